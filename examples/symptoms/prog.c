/* Adds numbers up; without an argument it also looks for one that is not there, and crashes. */
#include <stdio.h>
#include <stdlib.h>

struct number {
    int value;
    struct number *next;
};

static struct number *push(struct number *list, int value) {
    struct number *number = malloc(sizeof *number);
    number->value = value;
    number->next = list;
    return number;
}

static struct number *find(struct number *list, int value) {
    while (list && list->value != value)
        list = list->next;
    return list;
}

int main(int count, char **words) {
    struct number *list = NULL;
    int total = 0;
    for (int i = 1; i <= 10; i++)
        list = push(list, i * i * 28 + i);
    for (struct number *number = list; number; number = number->next)
        total += number->value;
    printf("total %d\n", total);
    fflush(stdout);
    if (count > 1 && words[1][0] == 'x')
        puts("an argument that nobody gives");
    return count > 1 ? 0 : find(list, 7)->value;
}
