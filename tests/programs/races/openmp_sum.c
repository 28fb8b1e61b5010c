// finds: data-race
// build: -fopenmp
// A sum over a parallel loop, with and without a reduction.
#include "twin.h"
static long sum;
int main(void)
{
#ifdef IS_CLEAN
#pragma omp parallel for num_threads(2) reduction(+ : sum)
#else
#pragma omp parallel for num_threads(2)
#endif
    for (int i = 0; i < 40; i++)
        sum += i;
    return sum == 0;
}
