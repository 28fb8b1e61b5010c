// All ways to get a block, all of it used, all freed.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    void *p;
    if (posix_memalign(&p, 64, 200))
        return 1;
    memset(p, 1, 200);
    free(p);
    p = aligned_alloc(32, 64);
    memset(p, 1, 64);
    free(p);
    p = memalign(32, 100);
    memset(p, 1, 100);
    free(p);
    char *text = strdup("text");
    text[3] = 'x';
    free(text);
    text = strndup("longer", 3);
    text[2] = 'x';
    free(text);
    if (asprintf(&text, "%d and %s", 3, "four") < 0)
        return 1;
    text[0] = 'x';
    free(text);
    p = realloc(NULL, 10);
    p = realloc(p, 100);
    p = realloc(p, 20);
    free(p);
    p = reallocarray(NULL, 4, 8);
    free(p);
    free(NULL);
    free(malloc(0));
    char *whole = malloc(5);
    memset(whole, 1, malloc_usable_size(whole));
    free(whole);
    p = malloc(1 << 20);
    p = realloc(p, 4 << 20);
    free(p);
    return 0;
}
