// build: -O1 -pthread
// Sockets on loopback: TCP echo between threads, UDP, unix stream and datagram, descriptor passing,
// credentials, sendmsg/recvmsg with many parts, shutdown, SO_ errors, select.
#include "check.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/uio.h>
#include <sys/wait.h>
static int listener;
static void *echo(void *a)
{
    for (int n = 0; n < 3; n++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        char buffer[1000];
        ssize_t got;
        while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0) CHECK(send(fd, buffer, (size_t)got, MSG_NOSIGNAL) == got);
        close(fd);
    }
    return a;
}
static void pass(int through, int fd)
{
    char byte = 'f', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    CHECK(sendmsg(through, &message, 0) == 1);
}
static int take(int through)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    CHECK(recvmsg(through, &message, MSG_CMSG_CLOEXEC) == 1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}
int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(bind(listener, (void *)&address, length));
    MUST(listen(listener, 5));
    MUST(getsockname(listener, (void *)&address, &length));
    pthread_t t;
    CHECK(!pthread_create(&t, NULL, echo, NULL));
    static char data[100000], back[100000];
    for (int i = 0; i < 100000; i++) data[i] = (char)(i * 17);
    for (int n = 0; n < 3; n++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        MUST(connect(fd, (void *)&address, sizeof address));
        MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
        size_t total = 0;
        for (size_t at = 0; at < sizeof data; at += 1000) {
            CHECK(send(fd, data + at, 1000, 0) == 1000);
            size_t got = 0;
            while (got < 1000) {
                ssize_t r = recv(fd, back + at + got, 1000 - got, 0);
                CHECK(r > 0);
                got += (size_t)r;
            }
            total += got;
        }
        CHECK(total == sizeof data && memcmp(data, back, sizeof data) == 0);
        MUST(shutdown(fd, SHUT_WR));
        CHECK(recv(fd, back, 1, 0) == 0);
        close(fd);
    }
    pthread_join(t, NULL);
    close(listener);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(fd, (void *)&address, sizeof address) == -1);
    printf("connect to nobody: %s\n", strerrorname_np(errno));
    int u[2];
    for (int i = 0; i < 2; i++) {
        u[i] = socket(AF_INET, SOCK_DGRAM, 0);
        address.sin_port = 0;
        MUST(bind(u[i], (void *)&address, sizeof address));
    }
    length = sizeof address;
    MUST(getsockname(u[1], (void *)&address, &length));
    struct iovec parts[3] = {{"ab", 2}, {"cde", 3}, {"f", 1}};
    struct msghdr message = {.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = parts, .msg_iovlen = 3};
    CHECK(sendmsg(u[0], &message, 0) == 6);
    CHECK(recvfrom(u[1], back, 100, 0, NULL, NULL) == 6 && memcmp(back, "abcdef", 6) == 0);
    struct mmsghdr many[4];
    memset(many, 0, sizeof many);
    for (int i = 0; i < 4; i++) many[i].msg_hdr = message;
    CHECK(sendmmsg(u[0], many, 4, 0) == 4);
    for (int i = 0; i < 4; i++) CHECK(many[i].msg_len == 6 && recv(u[1], back, 100, 0) == 6);
    int s[2], p[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    MUST(pipe(p));
    pid_t pid = fork();
    if (!pid) {
        int passed = take(s[1]);
        CHECK(write(passed, "through a passed descriptor\n", 28) == 28);
        _exit(0);
    }
    pass(s[0], p[1]);
    char line[100] = {0};
    CHECK(read(p[0], line, 99) == 28);
    fputs(line, stdout);
    waitpid(pid, NULL, 0);
    struct ucred peer;
    length = sizeof peer;
    MUST(getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &peer, &length));
    CHECK(peer.pid == getpid() && peer.uid == getuid());
    return ok();
}
