/* Two threads that take two locks in different orders, and always meet. */
#include <pthread.h>
static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *transfer(void *given) {
    pthread_mutex_lock(&accounts);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&journal);
    pthread_mutex_unlock(&journal);
    pthread_mutex_unlock(&accounts);
    return given;
}

static void *report(void *given) {
    pthread_mutex_lock(&journal);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&accounts);
    pthread_mutex_unlock(&accounts);
    pthread_mutex_unlock(&journal);
    return given;
}

int main(void) {
    pthread_t one, other;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&one, 0, transfer, 0);
    pthread_create(&other, 0, report, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
