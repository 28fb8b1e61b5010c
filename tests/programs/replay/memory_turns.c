// build: -O1
// Processes that take turns on much anonymous shared memory, each writing a few pages of it: by itself,
// through the kernel, then emptied, closed or unmapped before the next one looks; and one that is killed
// in the middle.
#include "check.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES = 5000, ROUNDS = 40, CHILDREN = 3 };
struct shared { _Atomic int turn, stop; unsigned long sum[CHILDREN + 1]; };

static unsigned char *area;
static struct shared *shared;
static unsigned char *segment;

static unsigned long digest(void)
{
    unsigned long sum = 5381;
    for (long i = 0; i < PAGES; i++) sum = sum * 33 + area[i * PAGE] + area[i * PAGE + 100];
    for (long i = 0; i < 16; i++) sum = sum * 33 + segment[i * PAGE];
    return sum;
}

static unsigned char *page(unsigned number) { return area + (long)(number % PAGES) * PAGE; }

static unsigned noise(void)
{
    unsigned value;
    MUST(syscall(SYS_getrandom, &value, sizeof value, 0));
    return value;
}

static void one_turn(int self, int round)
{
    unsigned any = noise();
    page(any)[0]++;
    page(any >> 8)[100] += (unsigned char)self;
    segment[round % 16 * PAGE] += (unsigned char)any;
    switch ((round + self) % 6) {
    case 0: // the kernel writes
        MUST(syscall(SYS_getrandom, page(any >> 4), 50, 0));
        break;
    case 1: // out of this process's page table, but not gone
        MUST(madvise(page(any), PAGE, MADV_DONTNEED));
        break;
    case 2: // gone
        MUST(madvise(page(any >> 3), PAGE, MADV_REMOVE));
        break;
    case 3: // closed while the others run; what they write shows when it is open again
        MUST(mprotect(page(7), PAGE, PROT_NONE));
        break;
    case 4:
        MUST(mprotect(page(7), PAGE, PROT_READ | PROT_WRITE));
        shared->sum[self] += page(7)[0];
        page(7)[0] += (unsigned char)any;
        break;
    case 5: { // the same page at two places, where that can be had
        unsigned char *again = mremap(page(11), 0, PAGE, MREMAP_MAYMOVE);
        if (again == MAP_FAILED) break;
        again[0] += (unsigned char)any;
        CHECK(page(11)[0] == again[0]);
        MUST(munmap(again, PAGE));
    }
    }
}

static void work(int self)
{
    for (int round = 0; round < ROUNDS; round++) {
        while (shared->turn % (CHILDREN + 1) != self) usleep(100);
        MUST(mprotect(page(7), PAGE, round % 2 ? PROT_READ : PROT_READ | PROT_WRITE));
        shared->sum[self] += digest();
        MUST(mprotect(page(7), PAGE, PROT_READ | PROT_WRITE));
        one_turn(self, round);
        shared->turn++;
    }
}

/* What a process writes and then has no more is the others' to see. */
static void write_and_unmap(int self)
{
    unsigned char *own = page(30 + (unsigned)self);
    own[0] += (unsigned char)noise();
    MUST(munmap(own, PAGE));
}

static void killed_in_the_middle(void)
{
    pid_t child = fork();
    MUST(child);
    if (child == 0)
        for (;;) page(noise())[0]++;
    while (page(3)[200] == 0 && area[noise() % PAGES * PAGE] < 3) usleep(100);
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, NULL, 0));
    printf("after the kill %lx\n", digest());
}

int main(void)
{
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED && shared != MAP_FAILED);
    int id = shmget(IPC_PRIVATE, 16 * PAGE, 0600);
    MUST(id);
    segment = shmat(id, NULL, 0);
    CHECK(segment != (void *)-1);
    MUST(shmctl(id, IPC_RMID, NULL));
    for (int child = 1; child <= CHILDREN; child++) {
        pid_t process = fork();
        MUST(process);
        if (process == 0) {
            work(child);
            write_and_unmap(child);
            printf("child %d %lx\n", child, shared->sum[child]);
            fflush(stdout);
            _exit(0);
        }
    }
    work(0);
    while (wait(NULL) > 0) {}
    MUST(mprotect(page(7), PAGE, PROT_READ | PROT_WRITE));
    printf("parent %lx %lx\n", shared->sum[0], digest());
    killed_in_the_middle();
    puts("ok");
    return 0;
}
