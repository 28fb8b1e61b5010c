// rules: leak-in-transaction
// as: transaction=handle
// A request leaves a block behind; a block from before it does not count.
#include <stdlib.h>

static void *state, *left;

static int handle(int request) {
    void *scratch = malloc(10);
    left = malloc(20); // LOSES leak-in-transaction
#ifdef FIXED
    free(left);
#endif
    free(scratch);
    return request;
}

int main(void) {
    state = malloc(5);
    int answer = handle(1);
    free(state);
    return answer > 100;
}
