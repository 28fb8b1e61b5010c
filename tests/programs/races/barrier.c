// finds: data-race
// Each thread writes its half and reads the other's behind a barrier; the racy one reads before.
#include "twin.h"
static pthread_barrier_t barrier;
static int half[2];
static void step(int self)
{
    for (int round = 0; round < 5; round++) {
        half[self] = round;
        CLEAN(pthread_barrier_wait(&barrier));
        sink(half[1 - self]);
        pthread_barrier_wait(&barrier);
    }
}
static void *first(void *unused) { step(0); return unused; }
static void *second(void *unused) { step(1); return unused; }
int main(void) { pthread_barrier_init(&barrier, NULL, 2); two(first, second); return 0; }
