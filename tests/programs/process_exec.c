// build: -O1
// Exec in all its forms: of itself with odd argv, with an environment of its own, by descriptor,
// through #! scripts, of a missing file (errno, and life goes on), of a directory, of a text file,
// with close-on-exec and inherited descriptors, ignored and blocked signals kept, vfork + exec.
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
extern char **environ;
static int wait_for(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}
static void make(const char *name, const char *text, int mode)
{
    int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0700);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    MUST(chmod(name, mode));
}
static int child(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) printf("<%s>", argv[i]);
    for (char **e = environ; *e; e++) printf(" %s", *e);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    struct sigaction act;
    sigaction(SIGUSR1, NULL, &act);
    int ignored = act.sa_handler == SIG_IGN;
    sigaction(SIGUSR2, NULL, &act);
    printf(" ignored %d default %d blocked %d fds %d%d%d\n", ignored, act.sa_handler == SIG_DFL,
           sigismember(&mask, SIGHUP), fcntl(7, F_GETFD), fcntl(8, F_GETFD), fcntl(9, F_GETFD));
    return 17;
}
static void on_signal(int s) { (void)s; }
int main(int argc, char **argv)
{
    if (getenv("CHILD") || (argc && argv[0][0] == '-')) return child(argc, argv);
    setvbuf(stdout, NULL, _IONBF, 0);
    char exe[4096] = {0};
    CHECK(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    signal(SIGUSR1, SIG_IGN), signal(SIGUSR2, on_signal);
    sigset_t hup;
    sigemptyset(&hup), sigaddset(&hup, SIGHUP);
    sigprocmask(SIG_BLOCK, &hup, NULL);
    int null = open("/dev/null", O_RDWR);
    dup3(null, 7, 0), dup3(null, 8, O_CLOEXEC), dup3(null, 9, 0);
    char *odd[] = {"-odd name", "", "--", "--exit-code=guest", NULL}, *env[] = {"CHILD=1", "A==", "", NULL};
    if (!fork()) execve(exe, odd, env), _exit(99);
    int status;
    wait(&status);
    printf("execve %d\n", WEXITSTATUS(status));
    pid_t pid = vfork();
    if (!pid) execve(exe, odd, env), _exit(99);
    printf("vfork %d\n", wait_for(pid));
    pid = vfork();
    if (!pid) execve("/nonexistent", odd, env), _exit(errno == ENOENT ? 44 : 45);
    printf("vfork that fails %d\n", wait_for(pid));
    pid = fork();
    int fd = open(exe, O_RDONLY | O_CLOEXEC);
    if (!pid) fexecve(fd, odd, env), _exit(99);
    printf("fexecve %d\n", wait_for(pid));
    make("script", "#!/bin/sh -f\necho script \"$0\" \"$@\" *\nexit 3\n", 0755);
    char *words[] = {"zero", "one two", "", "three", NULL};
    pid = fork();
    if (!pid) execv("./script", words), _exit(99);
    printf("script %d\n", wait_for(pid));
    make("outer", "#!./script inner\n", 0755);
    pid = fork();
    if (!pid) execv("./outer", words), _exit(99);
    printf("script of a script %d\n", wait_for(pid));
    make("text", "no magic\n", 0755);
    make("closed", "#!/bin/sh\n", 0600);
    make("lost", "#!/no/such/interpreter\n", 0755);
    mkdir("folder", 0755);
    const char *bad[] = {"text", "closed", "lost", "folder", "missing", "script/x", ""};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(execv(bad[i], words) == -1);
        printf("'%s' %s\n", bad[i], strerrorname_np(errno));
    }
    pid = fork();
    if (!pid) execlp("sh", "sh", "-c", "kill -0 $$ && exit 5", NULL), _exit(99);
    printf("on PATH %d\n", wait_for(pid));
    for (int i = 0; i < 3; i++) {                     /* a chain of execs keeps its pid */
        pid = fork();
        char text[20];
        if (!pid) {
            sprintf(text, "%d", getpid());
            execl("/bin/sh", "sh", "-c", "exec sh -c 'exec sh -c \"test $0 = \\$\\$\" $0' $0", text, NULL);
        }
        CHECK(wait_for(pid) == 0);
    }
    return ok();
}
