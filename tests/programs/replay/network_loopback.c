// build: -O1 -pthread
// TCP and UDP on the loopback interface: ports of the kernel's choice, connections in the order in
// which they come, what the peer's address is.
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

static struct sockaddr_in server;

static void *client(void *argument)
{
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    MUST(descriptor);
    MUST(connect(descriptor, (struct sockaddr *)&server, sizeof server));
    char text[40];
    int length = snprintf(text, sizeof text, "client %d", (int)(long)argument);
    CHECK(send(descriptor, text, (size_t)length, 0) == length);
    CHECK(recv(descriptor, text, sizeof text, 0) == 2);
    close(descriptor);
    return NULL;
}

int main(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(listener);
    server.sin_family = AF_INET;
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(listener, (struct sockaddr *)&server, sizeof server));
    socklen_t size = sizeof server;
    MUST(getsockname(listener, (struct sockaddr *)&server, &size));
    MUST(listen(listener, 8));
    printf("port %d\n", ntohs(server.sin_port));
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, client, (void *)i) == 0);
    for (int i = 0; i < 4; i++) {
        struct sockaddr_in peer;
        size = sizeof peer;
        int descriptor = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC);
        MUST(descriptor);
        char text[40];
        ssize_t got = recv(descriptor, text, sizeof text, 0);
        CHECK(got > 0);
        printf("%.*s from %s:%d\n", (int)got, text, inet_ntoa(peer.sin_addr), ntohs(peer.sin_port));
        CHECK(send(descriptor, "hi", 2, 0) == 2);
        close(descriptor);
    }
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    int datagrams[2];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
    for (int i = 0; i < 2; i++) {
        datagrams[i] = socket(AF_INET, SOCK_DGRAM, 0);
        MUST(datagrams[i]);
        address.sin_port = 0;
        MUST(bind(datagrams[i], (struct sockaddr *)&address, sizeof address));
    }
    size = sizeof address;
    MUST(getsockname(datagrams[1], (struct sockaddr *)&address, &size));
    CHECK(sendto(datagrams[0], "datagram", 8, 0, (struct sockaddr *)&address, size) == 8);
    char text[4];
    size = sizeof from;
    CHECK(recvfrom(datagrams[1], text, 4, MSG_TRUNC, (struct sockaddr *)&from, &size) == 8);
    printf("%.4s from %d\n", text, ntohs(from.sin_port));
    return ok();
}
