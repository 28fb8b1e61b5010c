// finds: data-race
// build: -fopenmp
// A table that is changed in a critical section, and read behind a barrier or in front of it.
#include "twin.h"
#include <omp.h>
static int table[8], uses;
int main(void)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
        uses++;
        table[omp_get_thread_num() + 1] = 1;
#ifdef IS_CLEAN
#pragma omp barrier
#endif
#pragma omp single
        sink(table[0] + table[1] + table[2]);
    }
    return 0;
}
