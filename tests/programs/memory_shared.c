// build: -O1 -pthread
// Memory shared between parent and child: anonymous, memfd, SysV and POSIX segments, process-shared
// locks; madvise (DONTNEED, FREE, DONTFORK, WIPEONFORK), mincore, mlock, process_vm_readv.
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>
#include <sys/wait.h>
enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE };
struct shared { pthread_mutex_t lock; pthread_cond_t changed; long counter; int turn; };
static void end(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}
int main(void)
{
    struct shared *s = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t ma;
    pthread_condattr_t ca;
    pthread_mutexattr_init(&ma), pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&ca), pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&s->lock, &ma), pthread_cond_init(&s->changed, &ca);
    pid_t pid = fork();
    int me = pid == 0;
    for (int i = 0; i < 300; i++) {
        pthread_mutex_lock(&s->lock);
        while (s->turn != me) pthread_cond_wait(&s->changed, &s->lock);
        s->counter = s->counter * 3 % 10007 + me;
        s->turn = 1 - me;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    if (!pid) _exit(0);
    end(pid);
    printf("counter %ld\n", s->counter);
    int fd = memfd_create("m", 0);
    MUST(ftruncate(fd, 2 * PAGE));
    char *m = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0), *again = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);
    m[5] = 'x';
    CHECK(again[5] == 'x');
    if (!(pid = fork())) { again[6] = 'y'; _exit(0); }
    end(pid);
    CHECK(m[6] == 'y');
    int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    if (id >= 0) {
        char *segment = shmat(id, NULL, 0);
        CHECK(segment != (void *)-1);
        if (!(pid = fork())) { strcpy(segment, "from the child"); _exit(0); }
        end(pid);
        CHECK(strcmp(segment, "from the child") == 0);
        MUST(shmdt(segment));
        MUST(shmctl(id, IPC_RMID, NULL));
    }
    char *p = mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 3, 4 * PAGE);
    MUST(madvise(p, PAGE, MADV_DONTNEED));
    CHECK(p[0] == 0 && p[PAGE] == 3);
    MUST(madvise(p + PAGE, PAGE, MADV_WIPEONFORK));
    MUST(madvise(p + 2 * PAGE, PAGE, MADV_DONTFORK));
    if (!(pid = fork())) {
        unsigned char v;
        CHECK(p[PAGE] == 0 && p[3 * PAGE] == 3);
        CHECK(mincore(p + 2 * PAGE, PAGE, &v) == -1 && errno == ENOMEM);
        _exit(0);
    }
    end(pid);
    unsigned char vec[4];
    MUST(mincore(p, 4 * PAGE, vec));
    MUST(mlock(p, PAGE));
    MUST(munlock(p, PAGE));
    char copy[16];
    struct iovec to = {copy, 16}, from = {p + 3 * PAGE, 16};
    CHECK(process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 16 && copy[15] == 3);
    return ok();
}
