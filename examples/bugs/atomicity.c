/* Two steps that should be one are torn apart by another thread.
 *
 * A cache hands out a connection if it has one. Between the look and the use a second thread
 * closes it. The threads are made to meet in this order, so that it always happens.
 *
 * build: gcc -g -pthread -o atomicity atomicity.c
 * ends:  SIGSEGV in send_line
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct connection {
    char *host;
    int lines;
};

static struct connection *current;
static sem_t looked, closed;
static int total;

static struct connection *open_connection(const char *host) {
    struct connection *connection = malloc(sizeof *connection);
    connection->host = strdup(host);
    connection->lines = 0;
    return connection;
}

static void close_connection(void) {
    struct connection *old = current;
    current = NULL; /* ROOT: while the other thread is between look and use */
    free(old->host);
    free(old);
}

static int is_open(void) {
    return current != NULL;
}

static void send_line(const char *text) {
    current->lines++;
    total += strlen(text);
}

static void *sender(void *text) {
    if (is_open()) {
        sem_post(&looked);
        sem_wait(&closed);
        send_line(text);
    }
    return NULL;
}

static void *closer(void *nothing) {
    sem_wait(&looked);
    close_connection();
    sem_post(&closed);
    return nothing;
}

int main(void) {
    pthread_t threads[2];
    sem_init(&looked, 0, 0);
    sem_init(&closed, 0, 0);
    current = open_connection("mail.example");
    pthread_create(&threads[0], NULL, closer, NULL);
    pthread_create(&threads[1], NULL, sender, "hello");
    pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    printf("%d bytes\n", total);
    return 0;
}
