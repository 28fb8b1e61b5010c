// build: -O1 -pthread
// A tree of processes and every kind of memory they can share: anonymous, System V, a file without a
// name, a file in /dev/shm, and one on disk; locks in it that threads of several processes wait for.
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

enum { CHILDREN = 3, ROUNDS = 60 };
struct area { pthread_mutex_t lock; pthread_cond_t changed; unsigned long long order; volatile long racy; int turn; };

static struct area *map(int file, int flags)
{
    if (file >= 0) MUST(ftruncate(file, 3 * 4096));
    struct area *area = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0);
    CHECK(area != MAP_FAILED);
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    CHECK(pthread_mutexattr_init(&mutex) == 0 && pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_condattr_init(&condition) == 0 && pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_mutex_init(&area->lock, &mutex) == 0 && pthread_cond_init(&area->changed, &condition) == 0);
    return area;
}

static struct area *areas[4];
static long *segment;
static int self;

static void *work(void *argument)
{
    unsigned mark = (unsigned)(self * 2 + (int)(long)argument + 1);
    for (int i = 0; i < ROUNDS; i++) {
        struct area *area = areas[i % 4];
        for (int j = 0; j < 200; j++) area->racy = area->racy + 1;
        CHECK(pthread_mutex_lock(&area->lock) == 0);
        area->order = area->order * 31 + mark;
        CHECK(pthread_mutex_unlock(&area->lock) == 0);
    }
    return NULL;
}

static void take_turns(void)
{
    struct area *area = areas[0];
    for (int i = 0; i < 5; i++) {
        CHECK(pthread_mutex_lock(&area->lock) == 0);
        while (area->turn % CHILDREN != self) CHECK(pthread_cond_wait(&area->changed, &area->lock) == 0);
        area->turn++;
        segment[self] += area->turn;
        CHECK(pthread_cond_broadcast(&area->changed) == 0);
        CHECK(pthread_mutex_unlock(&area->lock) == 0);
    }
}

int main(void)
{
    char name[64];
    snprintf(name, sizeof name, "/whydunit-test-%d", (int)getpid());
    int there = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    MUST(there);
    MUST(shm_unlink(name));
    int disk = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(disk);
    areas[0] = map(-1, MAP_ANONYMOUS);
    areas[1] = map(memfd_create("shared", 0), 0);
    areas[2] = map(there, 0);
    areas[3] = map(disk, 0);
    int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
    MUST(id);
    segment = shmat(id, NULL, 0);
    CHECK(segment != (void *)-1);
    MUST(shmctl(id, IPC_RMID, NULL));

    pid_t children[CHILDREN];
    for (self = 0; self < CHILDREN; self++) {
        if ((children[self] = fork()) == 0) {
            pthread_t other;
            CHECK(pthread_create(&other, NULL, work, (void *)1) == 0);
            work(NULL);
            CHECK(pthread_join(other, NULL) == 0);
            take_turns();
            _exit(0);
        }
        MUST(children[self]);
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
        printf("segment %ld\n", segment[i]);
    }
    for (int i = 0; i < 4; i++) printf("order %llx racy %ld\n", areas[i]->order, areas[i]->racy);
    CHECK(areas[0]->turn == 5 * CHILDREN);
    // Written through mappings alone, of which a file's times tell nothing, and mapped by another.
    int late = memfd_create("late", 0);
    MUST(ftruncate(late, 4096));
    usleep(150000);
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            volatile int *number = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, late, 0);
            CHECK(number != MAP_FAILED && *number == i);
            *number = i + 1;
            _exit(0);
        }
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    MUST(unlink("shared"));
    return ok();
}
