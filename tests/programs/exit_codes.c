// build: -O1
// reports
// Exit codes and every fatal signal, as seen by a parent's waitpid: WIFEXITED, WTERMSIG, core bit.
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
int main(void)
{
    for (int code = 0; code < 256; code += 51) {
        pid_t pid = fork();
        if (!pid) _exit(code);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        printf("exit %d\n", WEXITSTATUS(status));
    }
    const int fatal[] = {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL,
        SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU, SIGXFSZ,
        SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSYS, SIGRTMIN, SIGRTMAX};
    for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        pid_t pid = fork();
        if (!pid) {
            raise(fatal[i]);
            _exit(99);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        printf("%d: signaled %d by %d\n", fatal[i], WIFSIGNALED(status), WTERMSIG(status));
    }
    const int ignored[] = {SIGCHLD, SIGURG, SIGWINCH, SIGCONT};
    for (unsigned i = 0; i < sizeof ignored / sizeof *ignored; i++) raise(ignored[i]);
    return ok();
}
