/* Says that it has begun, and never ends: to be interrupted once the line is there. */
#include <unistd.h>

static void spin(void)
{
    volatile unsigned long turns = 0;
    write(1, "spinning\n", 9);
    for (;;)
        turns++;
}

int main(void)
{
    spin();
}
