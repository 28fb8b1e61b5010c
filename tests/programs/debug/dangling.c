// Dangling pointer: a table keeps a pointer to a block that `drop` frees, line 18; its place is used anew, and the
// handler that is called, line 38, is a text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct object {
    void (*finish)(struct object *);
    int size;
};

static struct object *table[4];

static void finish(struct object *object) {
    printf("%d\n", object->size);
}

static void drop(struct object *object) { free(object); }

static struct object *make(int size) {
    struct object *object = malloc(sizeof *object);
    object->finish = finish;
    object->size = size;
    return object;
}

int main(void) {
    for (int i = 0; i < 4; i++)
        table[i] = make(i);
    for (int i = 0; i < 4; i++)
        if (table[i]->size == 2)
            drop(table[i]);
    char *text = malloc(sizeof(struct object));
    memset(text, 'A', 8);
    text[8] = 0;
    for (int i = 0; i < 4; i++) {
        struct object *object = table[i];
        object->finish(object);
    }
    return 0;
}
