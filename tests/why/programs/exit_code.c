/* die() is called under a condition of its caller. build: gcc -g -O0; class: exit-code */
#include <stdio.h>
#include <stdlib.h>
static void die(const char *why)
{
    fprintf(stderr, "quota: %s\n", why);
    exit(3);
}
static int quota(int users)
{
    return users * 2; /* ROOT */
}
int main(int argc, char **argv)
{
    int limit = quota(argc);
    int wanted = argc > 1 ? atoi(argv[1]) : 7;
    if (wanted > limit)
        die("too many");
    printf("%d of %d\n", wanted, limit);
    return 0;
}
