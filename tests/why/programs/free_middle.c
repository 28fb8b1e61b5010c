/* What was not allocated is freed. build: gcc -g -O0; class: invalid-free */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    char *text = strdup("  hello");
    while (*text == ' ')
        text++; /* ROOT */
    puts(text);
    free(text);
    return 0;
}
