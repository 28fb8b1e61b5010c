/* A server on the loopback: a header without a length. Parent serves, child asks. build: gcc -g -O0; class: null-pointer,wild-pointer,out-of-bounds */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
struct request { char method[8]; int length; char *body; };
static struct request parse(const char *text)
{
    struct request made = {{0}, 0, NULL};
    sscanf(text, "%7s", made.method);
    const char *header = strstr(text, "Length:");
    if (header) { /* ROOT */
        made.length = atoi(header + 7);
        made.body = calloc(made.length + 1, 1);
    }
    return made;
}
static void answer(const char *text)
{
    struct request made = parse(text);
    strcpy(made.body, "ok");
    printf("%s %d\n", made.method, made.length);
    free(made.body);
}
static void ask(struct sockaddr_in *to, const char *text)
{
    int out = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(out, (struct sockaddr *)to, sizeof *to) == 0 && write(out, text, strlen(text)) < 0)
        _exit(1);
    close(out);
}
int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int in = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(in, (struct sockaddr *)&at, size) || listen(in, 4) || getsockname(in, (struct sockaddr *)&at, &size))
        return 1;
    if (fork() == 0) {
        ask(&at, "PUT a Length: 12");
        ask(&at, "GET b");
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        char text[64] = {0};
        int one = accept(in, NULL, NULL);
        if (read(one, text, sizeof text - 1) > 0)
            answer(text);
        close(one);
    }
    return wait(NULL) < 0;
}
