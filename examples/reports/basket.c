// A program without a fault that anybody sees: it forgets its baskets.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct thing {
    struct thing *next;
    char *name;
};

static struct thing *add(struct thing *basket, const char *name)
{
    struct thing *thing = malloc(sizeof *thing);
    thing->next = basket;
    thing->name = strdup(name);
    return thing;
}

static char *note;

int main(void)
{
    for (int customer = 0; customer < 10; customer++) {
        struct thing *basket = NULL;
        basket = add(basket, "tea");
        basket = add(basket, "milk");
        printf("customer %d takes %s\n", customer, basket->name);
    }
    note = malloc(100);
    note += 4; // only its middle is remembered
    return 0;
}
