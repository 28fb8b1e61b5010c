// build: -O1
// A terminal: a child writes to it in pieces, the parent reads lines and raw bytes; its settings, size
// and what waits in it are asked for.
#include "check.h"
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

int main(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    MUST(master);
    MUST(grantpt(master));
    MUST(unlockpt(master));
    const char *name = ptsname(master);
    CHECK(name);
    printf("terminal %s\n", name);
    int slave = open(name, O_RDWR | O_NOCTTY);
    MUST(slave);
    struct winsize size = {.ws_row = 33, .ws_col = 77}, found;
    MUST(ioctl(master, TIOCSWINSZ, &size));
    MUST(ioctl(slave, TIOCGWINSZ, &found));
    CHECK(found.ws_row == 33 && found.ws_col == 77);
    struct termios settings;
    MUST(tcgetattr(slave, &settings));
    printf("flags %x %x %x %x\n", settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag);
    CHECK(ioctl(1, TCGETS, &settings) == 0 || errno == ENOTTY);
    fflush(stdout);
    pid_t child = fork();
    MUST(child);
    if (child == 0) {
        for (int i = 0; i < 10; i++) {
            dprintf(master, "line %d of %d\n", i, getpid());
            usleep(200);
        }
        _exit(0);
    }
    int waiting = 0, lines = 0;
    char buffer[64];
    while (lines < 10) {
        ssize_t got = read(slave, buffer, sizeof buffer);
        CHECK(got > 0);
        MUST(ioctl(slave, FIONREAD, &waiting));
        printf("%zd bytes, %d waiting: %.*s", got, waiting, (int)got, buffer);
        lines++;
    }
    CHECK(waitpid(child, NULL, 0) == child);
    MUST(tcgetattr(slave, &settings));
    cfmakeraw(&settings);
    MUST(tcsetattr(slave, TCSANOW, &settings));
    CHECK(write(master, "abc", 3) == 3);
    CHECK(read(slave, buffer, sizeof buffer) == 3);
    return ok();
}
