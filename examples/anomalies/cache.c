// A cache line is free (0), taken (1) or, very rarely, pending (2): it was chosen for replacement, and its
// address was invalidated before the data came. The search for a free line forgets the third.
// learn: 400 0 | 700 0 | 1000 0 | 350 0
// fail: 900 640
#include <stdio.h>
#include <stdlib.h>

enum { SETS = 16, WAYS = 4 };

static int *status;
static int misses;

static int find_free(int set) {
    for (int way = 0; way < WAYS; way++)
        if (status[set * WAYS + way] == 0) // FAULT: or 2
            return way;
    return -1;
}

static void access_line(int set, int evict) {
    int way = find_free(set);
    if (way < 0) {
        misses++;
        way = evict;
        status[set * WAYS + way] = 0;
    }
    status[set * WAYS + way] = 1;
}

int main(int argc, char **argv) {
    int steps = atoi(argv[1]), invalidate = atoi(argv[2]);
    unsigned dice = 12345;
    status = calloc(SETS * WAYS, sizeof *status);
    for (int step = 1; step <= steps; step++) {
        dice = dice * 1103515245 + 12345;
        int set = dice >> 16 & (SETS - 1);
        if (step == invalidate)
            status[set * WAYS] = 2;
        access_line(set, dice >> 24 & (WAYS - 1));
    }
    printf("%d misses\n", misses);
    free(status);
    return argc != 3;
}
