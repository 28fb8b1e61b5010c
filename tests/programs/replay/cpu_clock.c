// build: -O2
// RDTSC and RDTSCP: every value differs in every run.
#include "check.h"
#include <x86intrin.h>

int main(void)
{
    unsigned long long sum = 0, before = __rdtsc();
    unsigned processor;
    printf("first %llu\n", before);
    for (int i = 0; i < 2000; i++) {
        unsigned long long now = i % 7 ? __rdtsc() : __rdtscp(&processor);
        CHECK(now >= before);
        sum = sum * 31 + (now - before);
        before = now;
    }
    printf("sum %llx\n", sum);
    return ok();
}
