/* Some tens of millions of instructions, then a wrong pointer that was made along the way: longer than
 * a window. */
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; unsigned key; };
static unsigned table[4096];

int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 1000, x = 12345, sum = 7, odd = 0;
    struct node *head = 0;
    for (unsigned i = 0; i < rounds; i++) {
        x = x * 1664525 + 1013904223;
        table[x >> 20] += i;
        if ((x & 0xffff) == 77) {
            struct node *node = malloc(sizeof *node);
            node->key = x;
            node->next = head;
            head = node;
        }
        sum ^= table[(x >> 8) & 4095] >> 3;
    }
    for (struct node *node = head; node; node = node->next) odd += node->key & 1;
    int *wrong = sum & 1 ? (int *)(long)(odd & 7) : (int *)8;
    return *wrong;
}
