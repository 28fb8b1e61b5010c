// Blocks that realloc leaves where they are, whose old pointers are used after a comparison, or never again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
    char *all, *end, *mark;
};

/* Adjusts what points into the block only if that has moved. */
static void grow(struct list *list, size_t size)
{
    char *old = list->all, *new = realloc(old, size);
    if (!new)
        exit(3);
    if (new != old) {
        list->end = new + (list->end - old);
        list->mark = new + (list->mark - old);
        list->all = new;
    }
}

int main(void)
{
    struct list list;
    list.all = malloc(64);
    strcpy(list.all, "some text");
    list.end = list.all + 9;
    list.mark = list.all + 5;
    for (size_t size = 96; size < 4000; size += 96) {
        grow(&list, size);
        *list.end++ = 'x';
        if (*list.mark != 't')
            return 1;
    }
    *list.end = 0;
    char *shrunk = realloc(list.all, 32 + 64);
    list.all = shrunk;
    puts(list.all);
    free(list.all);
    return 0;
}
