/* Nobody writes to the pipe. build: gcc -g -O0; class: waiting; timeout: 1 */
#include <stdio.h>
#include <unistd.h>
static int ends[2];
static void open_channel(void)
{
    if (pipe(ends) != 0) /* ROOT */
        perror("pipe");
}
static int receive(void)
{
    char letter;
    return read(ends[0], &letter, 1) == 1 ? letter : -1;
}
int main(void)
{
    open_channel();
    printf("%d\n", receive());
    return 0;
}
