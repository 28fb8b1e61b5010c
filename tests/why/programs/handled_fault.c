/* The program handles SIGSEGV and exits. build: gcc -g -O0; class: null-pointer */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static const char *names[4] = {"a", "b", NULL, "d"}; /* data */
static void broken(int signal)
{
    (void)signal;
    _exit(9);
}
static char first_of(int at)
{
    const char *name = names[at]; /* ROOT */
    return name[0];
}
int main(void)
{
    signal(SIGSEGV, broken);
    for (int i = 0; i < 4; i++)
        printf("%c\n", first_of(i));
    return 0;
}
