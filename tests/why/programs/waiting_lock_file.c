/* Waits for a child that waits for input that never comes. build: gcc -g -O0; class: waiting; timeout: 1 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int to_child[2];
int main(void)
{
    if (pipe(to_child) != 0)
        return 1;
    if (fork() == 0) {
        char letter;
        return read(to_child[0], &letter, 1) == 1 ? 0 : 3;
    }
    int status;
    wait(&status); /* ROOT */
    printf("%d\n", status);
    return 0;
}
