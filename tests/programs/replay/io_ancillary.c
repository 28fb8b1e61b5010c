// build: -O1
// readv and writev, sendmsg and recvmsg with descriptors, credentials and time stamps, datagrams that
// are cut off, recvmmsg.
#include "check.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

static void send_descriptor(int socket, int descriptor)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {"fd", 2};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    CHECK(sendmsg(socket, &message, 0) == 2);
}

int main(void)
{
    int ends[2], on = 1;
    MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on));
    int random = open("/dev/urandom", O_RDONLY);
    MUST(random);
    send_descriptor(ends[0], random);
    close(random);
    char control[512], one[1], two[10];
    struct iovec parts[] = {{one, 1}, {two, 10}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control};
    CHECK(recvmsg(ends[1], &message, 0) == 2);
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_type == SCM_RIGHTS) {
            int descriptor;
            unsigned char bytes[8];
            memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
            CHECK(read(descriptor, bytes, 8) == 8);
            printf("descriptor %d gives %02x%02x%02x\n", descriptor, bytes[0], bytes[1], bytes[2]);
        } else if (head->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(head), sizeof who);
            CHECK(who.pid == getpid());
            printf("from %d\n", who.pid);
        } else if (head->cmsg_type == SCM_TIMESTAMP) {
            struct timeval when;
            memcpy(&when, CMSG_DATA(head), sizeof when);
            printf("at %ld.%06ld\n", (long)when.tv_sec, (long)when.tv_usec);
        }
    }
    char text[100];
    int length = snprintf(text, sizeof text, "%d has written this", getpid());
    struct iovec out[] = {{text, 3}, {text + 3, (size_t)length - 3}};
    CHECK(writev(ends[0], out, 2) == length);
    struct iovec in[] = {{one, 1}, {two, 4}};
    CHECK(readv(ends[1], in, 2) == 5);
    printf("%c%.4s\n", one[0], two);
    for (int i = 0; i < 3; i++) CHECK(send(ends[0], text, (size_t)(length - i), 0) > 0);
    char rooms[3][40];
    struct iovec room[3];
    struct mmsghdr many[3] = {{{0}, 0}};
    for (int i = 0; i < 3; i++) {
        room[i] = (struct iovec){rooms[i], i == 1 ? 6 : 40};
        many[i].msg_hdr.msg_iov = &room[i];
        many[i].msg_hdr.msg_iovlen = 1;
    }
    CHECK(recvmmsg(ends[1], many, 3, 0, NULL) == 3);
    for (int i = 0; i < 3; i++)
        printf("%u %x %.*s\n", many[i].msg_len, many[i].msg_hdr.msg_flags, (int)many[i].msg_len, rooms[i]);
    return ok();
}
