// Two threads pay into one account. A deposit reads the balance, works something out and writes the new balance;
// if the other thread does so in between, one of the two deposits is lost.
// build: -pthread
// learn: 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0
// fail: 3
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int balance;

static void deposit(int amount, int delay) {
    int known = balance;
    while (delay-- > 0)
        sched_yield();
    balance = known + amount; // FAULT: the balance may be another by now
}

static void *customer(void *delay) {
    for (int day = 0; day < 5; day++)
        deposit(10, *(int *)delay);
    return NULL;
}

int main(int argc, char **argv) {
    int delay = atoi(argv[1]);
    pthread_t one, two;
    pthread_create(&one, NULL, customer, &delay);
    if (delay == 0)
        pthread_join(one, NULL);
    pthread_create(&two, NULL, customer, &delay);
    if (delay != 0)
        pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", balance);
    return balance != 100 || argc != 2;
}
