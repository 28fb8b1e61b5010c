// Frees pointers that come from nowhere.
#include <stdint.h>
#include <stdlib.h>

int main(void)
{
    uint64_t number = 88172645463325252u;
    free(malloc(10));
    for (int i = 0; i < 20; i++) {
        number ^= number << 13, number ^= number >> 7, number ^= number << 17;
        free((void *)(uintptr_t)(number >> 20 & ~15u));
    }
    return 0;
}
