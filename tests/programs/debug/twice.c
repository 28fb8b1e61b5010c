// Double free: a shallow copy, line 23, shares a block with its original; both free it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct attribute {
    char *name;
    char *code;
};

static char *keep(const char *text) {
    size_t size = 2048 + strlen(text);
    char *kept = malloc(size);
    strcpy(kept, text);
    return kept;
}

static struct attribute *duplicate(const struct attribute *given) {
    struct attribute *copy = malloc(sizeof *copy);
    if (!given)
        return copy;
    copy->name = keep(given->name);
    copy->code = given->code;
    return copy;
}

static void release(struct attribute *old) {
    free(old->name);
    free(old->code);
    free(old);
}

int main(void) {
    struct attribute *first = malloc(sizeof *first);
    first->name = keep("font");
    first->code = keep("red");
    struct attribute *second = duplicate(first);
    release(second);
    printf("one is gone\n");
    if (first->name[0] == 'f')
        release(first);
    printf("both are gone\n");
    return 0;
}
