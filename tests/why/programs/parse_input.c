/* A number in the text is larger than the table. build: gcc -g -O0; class: exit-code */
#include <stdio.h>
#include <stdlib.h>
static const char text[] = "3 5 9 2";
static int table[8];
static int next(const char **at)
{
    int value = (int)strtol(*at, (char **)at, 10); /* ROOT */
    return value;
}
static void store(int index)
{
    if (index >= 8) {
        fprintf(stderr, "index %d is too large\n", index);
        exit(4);
    }
    table[index]++;
}
int main(void)
{
    const char *at = text;
    for (int i = 0; i < 4; i++)
        store(next(&at));
    return 0;
}
