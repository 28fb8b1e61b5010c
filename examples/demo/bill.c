/* Adds up a bill. Two of the three items have a discount; the total comes out wrong.
   build: cc -g -O0 -o bill bill.c */
#include <stdio.h>

struct item {
    const char *name;
    int price;
    int quantity;
};

static struct item items[] = {
    {"tea", 300, 2},
    {"milk", 120, 1},
    {"bread", 250, 4},
};

static int discount(const struct item *item)
{
    if (item->quantity > 1)
        return 10;
    return 0;
}

static int cost(const struct item *item)
{
    int percent = 100 + discount(item);
    return item->price * item->quantity * percent / 100;
}

int main(void)
{
    int total = 0;
    for (int i = 0; i < 3; i++)
        total += cost(&items[i]);
    printf("total %d\n", total);
    return 0;
}
