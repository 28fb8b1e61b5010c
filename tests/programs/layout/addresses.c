// Says where its code, heap, stack and library are.
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int local = 0;
    printf("%p %p %p %p\n", (void *)main, malloc(10), (void *)&local, (void *)puts);
    return 0;
}
