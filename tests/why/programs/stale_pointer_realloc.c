/* A pointer into a buffer outlives its realloc. build: gcc -g -O0; class: use-after-free */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char **words;
static int room, used;
static void add(char *word)
{
    if (used == room) {
        room = room ? room * 64 : 1;
        words = realloc(words, room * sizeof *words);
    }
    words[used++] = word;
}
int main(void)
{
    add("first");
    char **first = &words[0]; /* ROOT */
    char *between = malloc(16);
    between[0] = 0;
    for (int i = 0; i < 40; i++)
        add("more");
    char *other = malloc(8);
    memset(other, 0x42, 8);
    printf("%c\n", **first);
    return 0;
}
