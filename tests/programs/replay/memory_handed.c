// build: -O1
// Memory without a name, handed to a child through a socket that the child listens on, and written by
// both in turns: the child is recorded too, so this is not refused.
#include "check.h"
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { TURNS = 50, PAGE = 4096 };
struct words { unsigned turn, sum; };
union control { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr head; };

static void hand(int socket, int descriptor)
{
    union control control = { 0 };
    struct iovec piece = { "x", 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    control.head = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.head), &descriptor, sizeof descriptor);
    MUST(sendmsg(socket, &message, 0));
}

static int take(int socket)
{
    union control control = { 0 };
    char byte;
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    int descriptor;
    MUST(recvmsg(socket, &message, 0));
    memcpy(&descriptor, CMSG_DATA(&control.head), sizeof descriptor);
    return descriptor;
}

static unsigned play(int memory, unsigned self)
{
    volatile struct words *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    while (words->turn < TURNS) {
        if (words->turn % 2 != self) continue;
        unsigned char any;
        MUST(getrandom(&any, 1, 0));
        words->sum = words->sum * 31 + any;
        words->turn++;
    }
    return words->sum;
}

int main(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct sockaddr *name = (struct sockaddr *)&address;
    socklen_t length = sizeof address.sun_family; // the kernel finds a name
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), ready[2];
    MUST(pipe(ready));
    MUST(bind(listener, name, length));
    length = sizeof address;
    MUST(getsockname(listener, name, &length));
    if (fork() == 0) {
        MUST(listen(listener, 1));
        MUST(write(ready[1], "", 1));
        play(take(accept(listener, NULL, NULL)), 1);
        return 0;
    }
    char byte;
    MUST(read(ready[0], &byte, 1));
    int memory = memfd_create("words", 0), peer = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(ftruncate(memory, PAGE));
    MUST(connect(peer, name, length));
    hand(peer, memory);
    printf("sum %u\n", play(memory, 0));
    MUST(wait(NULL));
    puts("ok");
}
