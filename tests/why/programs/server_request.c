/* A server over a socket pair; one request has no path. build: gcc -g -O0; class: null-pointer */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static char *path_of(char *request)
{
    char *space = strchr(request, ' ');
    if (!space)
        return NULL; /* ROOT */
    return space + 1;
}
static void serve(int from)
{
    char request[64];
    long length;
    while ((length = read(from, request, sizeof request - 1)) > 0) {
        request[length] = 0;
        printf("%c\n", *path_of(request));
    }
}
int main(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return 1;
    const char *requests[] = {"GET /a", "GET /b", "QUIT"};
    for (int i = 0; i < 3; i++)
        if (write(ends[0], requests[i], strlen(requests[i])) < 0)
            return 1;
    serve(ends[1]);
    return 0;
}
