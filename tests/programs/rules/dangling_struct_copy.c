// The pointer travels in a copied struct, through a function and a global variable.
#include <stdlib.h>

struct view { int *data; int length; };
static struct view saved;

static struct view pass(struct view view) {
    return view;
}

int main(void) {
    struct view view = { malloc(12), 3 };
    view.data[0] = 9;
    saved = pass(view);
#ifndef FIXED
    free(view.data);
#endif
    int value = saved.data[0]; // FINDS dangling-pointer
#ifdef FIXED
    free(view.data);
#endif
    return value == 9 ? 0 : 0;
}
