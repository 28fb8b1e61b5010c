// build: -O1 -pthread
// Big transfers: half a megabyte on stdout, a pipe filled and drained by threads, partial writes,
// non-blocking ends, unbuffered single bytes, very long lines on stderr.
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
static int p[2];
enum { TOTAL = 1 << 20 };
static void *feed(void *a)
{
    static char chunk[70000];
    for (size_t i = 0; i < sizeof chunk; i++) chunk[i] = (char)(i % 251);
    size_t sent = 0;
    while (sent < TOTAL) {
        size_t want = TOTAL - sent < sizeof chunk ? TOTAL - sent : sizeof chunk;
        ssize_t n = write(p[1], chunk, want);
        CHECK(n > 0);
        sent += (size_t)n;
    }
    close(p[1]);
    return a;
}
int main(void)
{
    for (int i = 0; i < 8000; i++) printf("%06d the quick brown fox jumps over the lazy dog %d\n", i, i * i);
    fflush(stdout);
    for (int i = 0; i < 200; i++) CHECK(write(1, &"0123456789"[i % 10], 1) == 1);
    char *line = malloc(100001);
    memset(line, 'e', 100000);
    line[99999] = '\n', line[100000] = 0;
    fputs(line, stderr);
    MUST(pipe(p));
    pthread_t t;
    CHECK(!pthread_create(&t, NULL, feed, NULL));
    size_t got = 0;
    uint32_t sum = 0;
    unsigned char buffer[3001];
    for (ssize_t n; (n = read(p[0], buffer, sizeof buffer)) > 0; got += (size_t)n)
        for (ssize_t i = 0; i < n; i++) sum = sum * 31 + buffer[i];
    pthread_join(t, NULL);
    printf("\n%zu bytes %08x\n", got, sum);
    int q[2];
    MUST(pipe2(q, O_NONBLOCK));
    size_t fits = 0;
    for (ssize_t n; (n = write(q[1], line, 5000)) > 0;) fits += (size_t)n;
    printf("pipe holds %zu, then %s\n", fits, strerrorname_np(errno));
    return ok();
}
