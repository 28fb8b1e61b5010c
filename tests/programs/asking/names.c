/* A list whose keys are added up: values through pointers, a variable that is not set yet, and output. */
#include <stdio.h>
#include <stdlib.h>
struct node { int key; struct node *next; char name[32]; };
static struct node *make(int key, struct node *next) {
    struct node *n = malloc(sizeof *n);
    n->key = key * 3; // key
    n->next = next; // next
    snprintf(n->name, sizeof n->name, "node number %d", key); // name
    return n;
}
static int noise(int x) {
    volatile int a[8];
    for (int i = 0; i < 8; i++)
        a[i] = x + i; // noise
    return a[3];
}
static __attribute__((noinline)) int total(struct node *p) {
    int sum = 0; // zero
    while (p) {
        sum += p->key; // add
        p = p->next;
    }
    return sum;
}
static int after(int y) {
    int fresh;
    fresh = y * 7; // fresh
    return fresh + 1;
}
int main(void) {
    struct node *list = NULL;
    for (int i = 1; i < 4; i++)
        list = make(i, list); // call
    noise(5);
    int x = after(3);
    printf("x is %d\n", x); // other
    printf("total %d\n", total(list)); // print
    return 0;
}
