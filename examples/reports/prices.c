// A price list is dropped while twelve departments still ask it, each fifteen times: 180 call paths to one
// freed block.
#include <stdio.h>
#include <stdlib.h>

struct prices {
    int rate;
    char currency[4];
};

static struct prices *list;

static struct prices *read_prices(int rate)
{
    struct prices *made = malloc(sizeof *made);
    *made = (struct prices){rate, "EUR"};
    return made;
}

static void drop(struct prices *old)
{
    free(old);
}

static int price(int pieces)
{
    return pieces * list->rate;
}

static int letter(void)
{
    return list->currency[0];
}

#define FIVE(n) total += price(n); total += price(n); total += price(n); total += price(n); total += price(n);
#define DEPARTMENT(name, n)                     \
    static int name(void)                       \
    {                                           \
        int total = 0;                          \
        FIVE(n) FIVE(n) FIVE(n)                 \
        return total;                           \
    }
DEPARTMENT(bread, 1) DEPARTMENT(milk, 2) DEPARTMENT(tea, 3) DEPARTMENT(fruit, 4)
DEPARTMENT(fish, 5) DEPARTMENT(meat, 6) DEPARTMENT(wine, 7) DEPARTMENT(salt, 8)
DEPARTMENT(soap, 9) DEPARTMENT(paper, 10) DEPARTMENT(toys, 11) DEPARTMENT(tools, 12)

int main(void)
{
    list = read_prices(3);
    drop(list); // the list is still used below
    int total = bread() + milk() + tea() + fruit() + fish() + meat();
    total += wine() + salt() + soap() + paper() + toys() + tools();
    return total == letter();
}
