// The reference's Tidy bug in small: a list is copied, and a field of its elements only by pointer.
#include <stdlib.h>

struct attribute { struct attribute *next; char *php; };

static struct attribute *make(struct attribute *next) {
    struct attribute *made = malloc(sizeof *made);
    made->next = next;
    made->php = malloc(8);
    return made;
}

static struct attribute *copy(const struct attribute *from) {
    if (from == NULL)
        return NULL;
    struct attribute *made = malloc(sizeof *made);
    *made = *from;
    made->next = copy(from->next);
#ifdef FIXED
    made->php = malloc(8);
#endif
    return made;
}

static void discard(struct attribute *list) {
    while (list) {
        struct attribute *next = list->next;
        free(list->php); // FINDS double-free
        free(list);
        list = next;
    }
}

int main(void) {
    struct attribute *list = make(NULL);
    struct attribute *copied = copy(list);
    discard(copied);
    discard(list);
    return 0;
}
