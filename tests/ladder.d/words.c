// Counts the words of a file with a hash table and prints the commonest: libc of whatever make.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct word { struct word *next; long count; char text[32]; };
static struct word *table[4096];
static int by_count(const void *a, const void *b)
{
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : strcmp(x->text, y->text);
}
int main(int argc, char **argv)
{
    FILE *in = fopen(argc > 1 ? argv[1] : "/dev/null", "r");
    char text[32];
    long distinct = 0;
    while (in && fscanf(in, "%31s", text) == 1) {
        unsigned hash = 5381;
        for (char *c = text; *c; c++) *c = (char)tolower((unsigned char)*c), hash = hash * 33 + (unsigned char)*c;
        struct word **at = &table[hash % 4096];
        while (*at && strcmp((*at)->text, text)) at = &(*at)->next;
        if (!*at) *at = calloc(1, sizeof **at), strcpy((*at)->text, text), distinct++;
        (*at)->count++;
    }
    struct word **all = malloc(sizeof *all * (size_t)(distinct + 1));
    long n = 0;
    for (int i = 0; i < 4096; i++) for (struct word *w = table[i]; w; w = w->next) all[n++] = w;
    qsort(all, (size_t)n, sizeof *all, by_count);
    for (int i = 0; i < 10 && i < n; i++) printf("%6ld %s %.3f\n", all[i]->count, all[i]->text, (double)all[i]->count / (double)n);
    printf("%ld distinct\n", distinct);
    return 0;
}
