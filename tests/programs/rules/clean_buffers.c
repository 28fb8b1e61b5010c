// Several buffers of one system call, in blocks side by side, and what the kernel writes into a message itself.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int received(int from, char *one, char *two, size_t size)
{
    struct iovec parts[2] = {{one, size}, {two, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return (int)recvmsg(from, &message, 0);
}

int main(void)
{
    char *one = malloc(64), *two = malloc(32), local[24], other[24], text[96];
    memset(text, 't', sizeof text);
    int zeros = open("/dev/zero", O_RDONLY), ends[2];
    struct iovec parts[2] = {{one, 64}, {two, 32}};
    if (zeros < 0 || readv(zeros, parts, 2) != 96 || socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
        return 1;
    if (send(ends[0], text, 64, 0) != 64 || received(ends[1], two, one, 32) != 64)
        return 2;
    if (send(ends[0], text, 48, 0) != 48 || received(ends[1], local, other, 24) != 48)
        return 3;
    free(one);
    free(two);
    return local[23] == 't' && other[0] == 't' ? 0 : 4;
}
