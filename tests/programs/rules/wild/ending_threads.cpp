// Threads that allocate in every way, interrupted by signals, and end with freed blocks of theirs in the C
// library's hands, which then goes through them.
#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <string>
#include <sys/time.h>
#include <vector>

static volatile long ticks;
static void tick(int) { ticks++; }

static void *work(void *number) {
    unsigned state = (unsigned)(long)number;
    std::vector<void *> live;
    for (int i = 0; i < 400; i++) {
        state = state * 1103515245u + 12345u;
        unsigned chosen = state >> 16;
        switch (chosen % 6) {
        case 0: live.push_back(malloc(chosen % 300)); break;
        case 1: live.push_back(calloc(chosen % 7, chosen % 31)); break;
        case 2:
            if (!live.empty()) {
                void *&block = live[chosen % live.size()];
                block = realloc(block, 1 + chosen % 500);
            }
            break;
        case 3:
        case 4:
            if (!live.empty()) {
                free(live.back());
                live.pop_back();
            }
            break;
        case 5:
            std::string text(chosen % 200, 'x');
            delete[] new int[1 + chosen % 9];
            delete new long(5);
            void *aligned;
            if (!posix_memalign(&aligned, 64, chosen % 99))
                free(aligned);
        }
    }
    for (void *block : live)
        free(block);
    return NULL;
}

int main(void) {
    signal(SIGALRM, tick);
    itimerval often = {{0, 2000}, {0, 2000}}, never = {};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (pthread_t thread : threads)
        pthread_join(thread, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    work((void *)9);
    return 0;
}
