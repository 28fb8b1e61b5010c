// build: -O1
// Memory shared by parent and child, with a race between the two processes.
#include "check.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct shared { volatile long counter; atomic_int turn; atomic_int ready; };

int main(void)
{
    struct shared *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t child = fork();
    MUST(child);
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < 2) usleep(50);
    for (int i = 0; i < 300000; i++) shared->counter = shared->counter + 1;
    for (int i = 0; i < 20; i++) {
        while (atomic_load(&shared->turn) % 2 != (child == 0)) usleep(10);
        atomic_fetch_add(&shared->turn, 1);
    }
    if (child == 0) _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    printf("counter %ld\n", shared->counter);
    CHECK(shared->counter > 0 && shared->counter <= 600000 && shared->turn == 40);
    return ok();
}
