/* An assertion far from where the value was made. build: gcc -g -O0; class: assertion */
#include <assert.h>
#include <stdio.h>
static int level(int base, int step)
{
    int result = base - 3 * step; /* ROOT */
    return result;
}
static void set_volume(int volume)
{
    assert(volume >= 0);
    printf("volume %d\n", volume);
}
int main(void)
{
    set_volume(level(10, 2));
    set_volume(level(10, 4));
    return 0;
}
