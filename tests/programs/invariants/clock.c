// A simulation handles events in the order of their times. One is entered too late, and time runs backwards.
// learn: 40 0 | 60 0 | 75 0 | 30 0
// fail: 50 37
#include <stdio.h>
#include <stdlib.h>

static long now;
static long handled;

static void advance(long time) {
    now = time; // FAULT: nobody asks whether that is before
    handled++;
}

int main(int argc, char **argv) {
    int events = atoi(argv[1]), late = atoi(argv[2]);
    long time = 0;
    for (int event = 1; event <= events; event++) {
        time += 3 + event % 5;
        advance(event == late ? time - 40 : time);
    }
    printf("%ld at %ld\n", handled, now);
    return argc != 3;
}
