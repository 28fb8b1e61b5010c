// finds: data-race
// build: -fopenmp
// Two tasks make the halves of a result; it is used after taskwait, or without.
#include "twin.h"
static int left, right;
int main(void)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        { sched_yield(); left = 3; }
#pragma omp task
        { sched_yield(); TWIN(left, right) = 4; }
#pragma omp taskwait
        sink(left + right);
    }
    return 0;
}
