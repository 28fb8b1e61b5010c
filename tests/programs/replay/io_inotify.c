// build: -O1
// inotify: events that a child causes, read as they come.
#include "check.h"
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>

int main(void)
{
    MUST(mkdir("watched.tmp", 0700));
    int watch = inotify_init1(IN_CLOEXEC);
    MUST(watch);
    MUST(inotify_add_watch(watch, "watched.tmp", IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO));
    pid_t child = fork();
    MUST(child);
    if (child == 0) {
        char one[60], two[60];
        for (int i = 0; i < 6; i++) {
            snprintf(one, sizeof one, "watched.tmp/%d-%d", getpid(), i);
            snprintf(two, sizeof two, "watched.tmp/moved-%d", i);
            int descriptor = open(one, O_CREAT | O_WRONLY, 0600);
            CHECK(write(descriptor, "x", 1) == 1);
            close(descriptor);
            MUST(rename(one, two));
            MUST(unlink(two));
            usleep(200);
        }
        _exit(0);
    }
    int deleted = 0;
    while (deleted < 6) {
        char buffer[400] __attribute__((aligned(8)));
        ssize_t got = read(watch, buffer, sizeof buffer);
        CHECK(got > 0);
        printf("%zd bytes:", got);
        for (char *at = buffer; at < buffer + got;) {
            struct inotify_event *event = (struct inotify_event *)at;
            printf(" %x %s %u", event->mask, event->len ? event->name : "-", event->cookie);
            deleted += (event->mask & IN_DELETE) != 0;
            at += sizeof *event + event->len;
        }
        printf("\n");
    }
    CHECK(waitpid(child, NULL, 0) == child);
    MUST(rmdir("watched.tmp"));
    return ok();
}
