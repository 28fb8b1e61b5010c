/* Hands out seats to a queue of guests and does not come to an end.
   build: cc -g -O0 -o queue queue.c */
#include <stdio.h>

struct guest {
    const char *name;
    struct guest *next;
};

static struct guest ann = {"ann", NULL};
static struct guest bob = {"bob", NULL};
static struct guest eve = {"eve", NULL};

static void stand_behind(struct guest *last, struct guest *next)
{
    last->next = next;
}

static int seats_for(const struct guest *first)
{
    int seats = 0;
    while (first) {
        seats++;
        first = first->next;
    }
    return seats;
}

int main(void)
{
    stand_behind(&ann, &bob);
    stand_behind(&bob, &eve);
    stand_behind(&eve, &ann);
    printf("%d seats\n", seats_for(&ann));
    return 0;
}
