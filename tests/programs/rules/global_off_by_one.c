// A loop that goes one element too far into a global array.
#include <stdio.h>

int table[10];
int after = 7;

int main(void)
{
    int *at = table;
    int sum = 0;
#ifdef FIXED
    int count = 10;
#else
    int count = 11;
#endif
    for (int i = 0; i < count; i++)
        sum += at[i]; // FINDS global-overflow
    printf("%d %d\n", sum, after);
    return 0;
}
