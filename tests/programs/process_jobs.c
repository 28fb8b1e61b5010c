// build: -O1 -lutil
// reports
// Job control on a terminal: a session leader on a pty, foreground and background groups, tcsetpgrp,
// SIGTTIN and SIGTTOU, SIGINT and SIGTSTP from typed control characters, SIGHUP at hang-up, SIGWINCH.
#include "check.h"
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
static volatile sig_atomic_t winches;
static void on_winch(int s) { (void)s; winches++; }
static int shell_like(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    int status;
    signal(SIGTTOU, SIG_IGN);
    CHECK(tcgetpgrp(0) == getpgrp());
    pid_t reader = fork();                            /* a background job that reads: SIGTTIN */
    if (!reader) {
        setpgid(0, 0);
        char c;
        (void)!read(0, &c, 1);
        _exit(1);
    }
    setpgid(reader, reader);
    CHECK(waitpid(reader, &status, WUNTRACED) == reader && WIFSTOPPED(status));
    printf("background read stopped by %d\n", WSTOPSIG(status));
    MUST(tcsetpgrp(0, reader));
    kill(-reader, SIGCONT);
    printf("type\n");
    CHECK(waitpid(reader, &status, WUNTRACED) == reader);
    printf("foreground read exit %d\n", WEXITSTATUS(status));
    tcsetpgrp(0, getpgrp());
    pid_t victim = fork();
    if (!victim) {
        setpgid(0, 0);
        tcsetpgrp(0, getpid());
        signal(SIGTTOU, SIG_DFL);
        printf("ready\n");
        for (;;) pause();
    }
    setpgid(victim, victim);
    CHECK(waitpid(victim, &status, WUNTRACED) == victim && WIFSTOPPED(status));
    printf("stopped by %d\n", WSTOPSIG(status));
    kill(-victim, SIGCONT);
    printf("again\n");
    CHECK(waitpid(victim, &status, 0) == victim && WIFSIGNALED(status));
    printf("interrupted by %d\n", WTERMSIG(status));
    tcsetpgrp(0, getpgrp());
    printf("bye\n");
    for (;;) pause();                                 /* until the hang-up */
}
static void expect(int master, const char *text)
{
    static char seen[8192];
    static size_t used;
    for (;;) {
        char *at = strstr(seen, text);
        if (at) {
            memmove(seen, at + strlen(text), strlen(at + strlen(text)) + 1);
            used = strlen(seen);
            return;
        }
        ssize_t n = read(master, seen + used, sizeof seen - 1 - used);
        CHECK(n > 0);
        (void)!write(1, seen + used, (size_t)n);
        used += (size_t)n;
        seen[used] = 0;
    }
}
int main(void)
{
    int master;
    struct winsize size = {24, 80, 0, 0};
    struct termios raw;
    int errors = dup(2);                              /* a crash report must not enter the dialogue */
    pid_t pid = forkpty(&master, NULL, NULL, &size);
    if (!pid) {
        dup2(errors, 2);
        tcgetattr(0, &raw);
        raw.c_lflag &= ~(tcflag_t)ECHO;
        raw.c_oflag &= ~(tcflag_t)OPOST;
        tcsetattr(0, TCSANOW, &raw);
        signal(SIGWINCH, on_winch);
        return shell_like();
    }
    expect(master, "type\n");
    CHECK(write(master, "x\n", 2) == 2);
    expect(master, "ready\n");
    CHECK(write(master, "\032", 1) == 1);             /* control-Z */
    expect(master, "again\n");
    CHECK(write(master, "\003", 1) == 1);             /* control-C */
    expect(master, "bye\n");
    size.ws_row = 50;
    MUST(ioctl(master, TIOCSWINSZ, &size));
    close(master);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    printf("hung up by %d\n", WTERMSIG(status));
    return ok();
}
