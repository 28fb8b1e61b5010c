/* A total is remembered and not renewed when what it was made from changes.
 *
 * A stock list caches the value of its goods. Changing a price forgets to mark the cache as old,
 * so the last report is wrong. The program notices and gives up.
 *
 * build: gcc -g -o stale_value stale_value.c
 * ends:  SIGABRT, the assertion in audit
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

struct goods {
    const char *name;
    int count;
    int price;
};

struct stock {
    struct goods goods[8];
    int kinds;
    int cached_value;
    int is_cached;
};

static void add_goods(struct stock *stock, const char *name, int count, int price) {
    struct goods *goods = &stock->goods[stock->kinds++];
    goods->name = name;
    goods->count = count;
    goods->price = price;
    stock->is_cached = 0;
}

static struct goods *find(struct stock *stock, const char *name) {
    for (int i = 0; i < stock->kinds; i++)
        if (strcmp(stock->goods[i].name, name) == 0)
            return &stock->goods[i];
    return NULL;
}

static int sum(const struct stock *stock) {
    int value = 0;
    for (int i = 0; i < stock->kinds; i++)
        value += stock->goods[i].count * stock->goods[i].price;
    return value;
}

static int value_of(struct stock *stock) {
    if (!stock->is_cached) {
        stock->cached_value = sum(stock); /* ROOT: made before the price changed */
        stock->is_cached = 1;
    }
    return stock->cached_value;
}

static void set_price(struct stock *stock, const char *name, int price) {
    find(stock, name)->price = price; /* and is_cached stays 1 */
}

static void audit(struct stock *stock, int expected) {
    int value = value_of(stock);
    printf("value %d\n", value);
    assert(value == expected);
}

int main(void) {
    struct stock stock = {0};
    add_goods(&stock, "nails", 1000, 1);
    add_goods(&stock, "hammers", 20, 900);
    add_goods(&stock, "saws", 10, 1500);
    audit(&stock, 34000);
    set_price(&stock, "saws", 1000);
    audit(&stock, 29000);
    return 0;
}
