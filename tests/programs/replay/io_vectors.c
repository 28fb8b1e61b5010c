// build: -O1 -pthread
// Calls that wait and then fill several buffers at once, while other threads look at all of them: readv,
// recvmsg with control data, recvmmsg, recvfrom and accept with addresses, select, waitid.
#include "check.h"
#include <pthread.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { LOOKS = 3000 };
static unsigned char room[5][64];
static struct iovec pieces[5];
static struct msghdr head;
static struct mmsghdr heads[2];
static char control[CMSG_SPACE(sizeof(int))];
static fd_set set;
static siginfo_t information;
static struct sockaddr_un name;
static socklen_t name_length;
static volatile int busy;
static long seen;

/* All that somebody may be writing to, as it is now. */
static unsigned long digest(void)
{
    const struct { const volatile void *start; size_t length; } all[] = {
        { room, sizeof room }, { &head, sizeof head }, { heads, sizeof heads }, { control, sizeof control },
        { &set, sizeof set }, { &information, sizeof information }, { &name, sizeof name },
        { &name_length, sizeof name_length },
    };
    unsigned long sum = 5381;
    for (size_t part = 0; part < sizeof all / sizeof *all; part++)
        for (size_t at = 0; at < all[part].length; at++)
            sum = sum * 33 + ((const volatile unsigned char *)all[part].start)[at];
    return sum;
}

static void *look(void *unused)
{
    unsigned long last = 0;
    while (busy)
        for (int i = 0; i < 20; i++) {
            unsigned long now = digest();
            seen = seen * 3 + (now != last);
            last = now;
        }
    return unused;
}

static pthread_t looker;
static int ends[2];

static void *send_later(void *how)
{
    unsigned char text[300];
    CHECK(getrandom(text, sizeof text, 0) == sizeof text);
    for (volatile int i = 0; i < LOOKS; i++) {}
    if (how) {
        char attached[CMSG_SPACE(sizeof(int))] = { 0 };
        struct iovec piece = { text, 200 };
        struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = attached,
                                  .msg_controllen = sizeof attached };
        struct cmsghdr *first = CMSG_FIRSTHDR(&message);
        first->cmsg_level = SOL_SOCKET;
        first->cmsg_type = SCM_RIGHTS;
        first->cmsg_len = CMSG_LEN(sizeof(int));
        *(int *)CMSG_DATA(first) = 1;
        MUST(sendmsg(ends[1], &message, 0));
    } else {
        MUST(send(ends[1], text, 200, 0));
    }
    return NULL;
}

static void begin(void *how)
{
    pthread_t sender;
    busy = 1;
    CHECK(pthread_create(&looker, NULL, look, NULL) == 0);
    CHECK(pthread_create(&sender, NULL, send_later, how) == 0);
    CHECK(pthread_detach(sender) == 0);
}

static void end(const char *what, long answer)
{
    busy = 0;
    CHECK(pthread_join(looker, NULL) == 0);
    printf("%s %ld: %lx, seen %lx\n", what, answer, digest() & 0xffff, seen & 0xffff);
}

static void accepted(void)
{
    struct sockaddr_un place = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(bind(listener, (struct sockaddr *)&place, sizeof(sa_family_t)));
    socklen_t length = sizeof place;
    MUST(getsockname(listener, (struct sockaddr *)&place, &length));
    MUST(listen(listener, 1));
    MUST(bind(client, (struct sockaddr *)&(struct sockaddr_un){ .sun_family = AF_UNIX }, sizeof(sa_family_t)));
    MUST(connect(client, (struct sockaddr *)&place, length));
    begin(NULL);
    name_length = sizeof name;
    int server = accept(listener, (struct sockaddr *)&name, &name_length);
    MUST(server);
    end("accept", name_length);
    MUST(close(listener));
    MUST(close(client));
    MUST(close(server));
    CHECK(recv(ends[0], room[0], 64, MSG_WAITALL) > 0);
}

int main(void)
{
    for (int i = 0; i < 5; i++) pieces[i] = (struct iovec){ room[i], 50 };
    MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    begin(NULL);
    end("readv", readv(ends[0], pieces, 5));
    begin(&seen);
    head = (struct msghdr){ .msg_iov = pieces, .msg_iovlen = 5, .msg_control = control,
                            .msg_controllen = sizeof control };
    end("recvmsg", recvmsg(ends[0], &head, 0));
    begin(&seen);
    heads[0].msg_hdr = heads[1].msg_hdr = (struct msghdr){ .msg_iov = pieces + 1, .msg_iovlen = 3 };
    end("recvmmsg", recvmmsg(ends[0], heads, 2, MSG_WAITFORONE, NULL));
    begin(NULL);
    name_length = sizeof name;
    end("recvfrom", recvfrom(ends[0], room[2], 64, 0, (struct sockaddr *)&name, &name_length));
    begin(NULL);
    FD_SET(ends[0], &set);
    struct timeval patience = { 20, 0 };
    end("select", select(ends[0] + 1, &set, NULL, NULL, &patience));
    CHECK(recv(ends[0], room[0], 64, 0) == 64);
    accepted();
    pid_t child = fork();
    MUST(child);
    if (child == 0) _exit(7);
    begin(NULL);
    end("waitid", waitid(P_PID, (id_t)child, &information, WEXITED));
    CHECK(information.si_status == 7);
    CHECK(recv(ends[0], room[0], 64, 0) == 64);
    return ok();
}
