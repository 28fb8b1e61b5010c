// Entering a name returns the entry that was there before, which is nobody: names are taken to be unique.
// learn: a b c d e f | one two three four | p q r s t u v w | lib bin etc usr var
// fail: a b c b e
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name;
    struct entry *next;
};

static struct entry *table[8];
static int size;

static struct entry *put(const char *name) {
    unsigned hash = 0;
    for (const char *at = name; *at; at++)
        hash = hash * 31 + (unsigned char)*at;
    struct entry **chain = &table[hash % 8];
    for (struct entry *entry = *chain; entry; entry = entry->next)
        if (strcmp(entry->name, name) == 0)
            return entry;
    struct entry *fresh = malloc(sizeof *fresh);
    fresh->name = name;
    fresh->next = *chain;
    *chain = fresh;
    size++;
    return NULL;
}

int main(int argc, char **argv) {
    for (int at = 1; at < argc; at++)
        put(argv[at]); // FAULT: what it returns is not looked at
    if (size != argc - 1) {
        fprintf(stderr, "%d entries of %d\n", size, argc - 1);
        return 1;
    }
    return 0;
}
