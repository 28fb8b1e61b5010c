// build: -O1
// A child in a user namespace of its own makes memory and hands it to its parent, as a browser's
// sandbox does: both map it, and each sees what the other writes.
#include "check.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static void send_memory(int peer, int memory)
{
    char byte = 'm', room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &memory, sizeof memory);
    CHECK(sendmsg(peer, &message, 0) == 1);
}

static int receive_memory(int peer)
{
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int memory;
    CHECK(recvmsg(peer, &message, 0) == 1);
    CHECK(CMSG_FIRSTHDR(&message));
    memcpy(&memory, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof memory);
    return memory;
}

static void child(int peer)
{
    if (unshare(CLONE_NEWUSER)) CHECK(errno == EPERM || errno == ENOSPC || errno == EUSERS);
    int memory = memfd_create("handed", MFD_CLOEXEC);
    MUST(memory);
    MUST(ftruncate(memory, 8192));
    long *words = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    CHECK(words != MAP_FAILED);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    words[0] = now.tv_nsec;
    send_memory(peer, memory);
    char byte;
    CHECK(read(peer, &byte, 1) == 1);
    CHECK(words[1] == words[0] + 1);
    words[2] = words[1] * 2;
    CHECK(write(peer, "d", 1) == 1);
}

int main(void)
{
    for (int round = 0; round < 3; round++) {
        int pair[2];
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        pid_t pid = fork();
        if (pid == 0) {
            close(pair[0]);
            child(pair[1]);
            _exit(0);
        }
        close(pair[1]);
        int memory = receive_memory(pair[0]);
        long *words = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        CHECK(words != MAP_FAILED);
        words[1] = words[0] + 1;
        CHECK(write(pair[0], "g", 1) == 1);
        char byte;
        CHECK(read(pair[0], &byte, 1) == 1);
        printf("%ld %ld\n", words[0], words[2] - words[0]);
        int status;
        MUST(waitpid(pid, &status, 0));
        CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
        close(memory), close(pair[0]);
        MUST(munmap(words, 8192));
    }
    puts("ok");
}
