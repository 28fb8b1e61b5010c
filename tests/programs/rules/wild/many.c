// Has many blocks, and goes through them: for rules that look at all of them at every access.
#include <stdlib.h>

int main(void)
{
    int *blocks[300];
    for (int i = 0; i < 300; i++) {
        blocks[i] = malloc(sizeof(int));
        *blocks[i] = i;
    }
    int sum = 0;
    for (int i = 0; i < 300; i++) {
        sum += *blocks[i];
        free(blocks[i]);
    }
    return sum == 0;
}
