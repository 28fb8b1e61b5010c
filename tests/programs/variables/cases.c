/* Accesses to variables of every kind of storage, inside and outside of their bounds, as the arguments say:
 *
 *     cases STORAGE SIZE FORM DEED INDEX
 *
 * STORAGE is stack, room (alloca), array (of variable length), static, own (of a thread), scope or return;
 * SIZE is small (10 bytes) or large (40); FORM is direct or passed (by a function that is given the address);
 * DEED is read or write. `scope` and `return` use a variable that is gone if INDEX is 1, and one that is there
 * if it is 0.
 */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 10
#define LARGE 40

static char static_before[16] = "before", static_small[SMALL] = "small", static_after[48] = "after";
static char static_large[LARGE] = "large";
static __thread char own_before[16], own_small[SMALL], own_after[16], own_large[LARGE], own_last[80];
static volatile int result;

struct deed {
    int large, passed, write;
    long at;
};

__attribute__((noinline)) static void pass(char *array, struct deed deed)
{
    if (deed.write)
        array[deed.at] = 'x';
    else
        result = array[deed.at];
}

#define ACCESS(array)                           \
    do {                                        \
        if (deed.passed)                        \
            pass(array, deed);                  \
        else if (deed.write)                    \
            (array)[deed.at] = 'x';             \
        else                                    \
            result = (array)[deed.at];          \
    } while (0)

__attribute__((noinline)) static void seen(void *one)
{
    __asm__ volatile("" : : "r"(one) : "memory");
}

__attribute__((noinline)) static void stack_small(struct deed deed)
{
    char room[96], array[SMALL] = "0123456", more[96];
    memset(room, 1, sizeof room);
    memset(more, 1, sizeof more);
    seen(room);
    seen(more);
    ACCESS(array);
    seen(array);
}

__attribute__((noinline)) static void stack_large(struct deed deed)
{
    char room[96], array[LARGE] = "0123456", more[96];
    memset(room, 1, sizeof room);
    memset(more, 1, sizeof more);
    seen(room);
    seen(more);
    ACCESS(array);
    seen(array);
}

__attribute__((noinline)) static void room(struct deed deed)
{
    char before[96];
    memset(before, 1, sizeof before);
    seen(before);
    size_t size = deed.large ? LARGE : SMALL;
    char *array = alloca(size);
    memset(array, 2, size);
    seen(array);
    ACCESS(array);
    seen(array);
}

__attribute__((noinline)) static void array_of(size_t size, struct deed deed)
{
    char before[96];
    memset(before, 1, sizeof before);
    seen(before);
    char array[size];
    memset(array, 2, size);
    seen(array);
    ACCESS(array);
    seen(array);
}

__attribute__((noinline)) static void in_scope(struct deed deed)
{
    char other[LARGE] = "other";
    char *pointer = other;
    seen(other);
    if (deed.at) {
        char array[LARGE] = "inner";
        seen(array);
        pointer = array;
        seen(&pointer);
    }
    deed.at = 0;
    pass(pointer, deed);
}

__attribute__((noinline)) static char *address_of(char *given, int gone)
{
    char array[LARGE] = "gone";
    char *volatile pointer = array;
    seen(array);
    return gone ? pointer : given;
}

__attribute__((noinline)) static void returned(struct deed deed)
{
    char other[LARGE] = "other";
    char *pointer = address_of(other, deed.at != 0);
    seen(other);
    deed.at = 0;
    pass(pointer, deed);
}

int main(int count, char **words)
{
    if (count != 6)
        return 2;
    struct deed deed = {
        .large = !strcmp(words[2], "large"),
        .passed = !strcmp(words[3], "passed"),
        .write = !strcmp(words[4], "write"),
        .at = atol(words[5]),
    };
    const char *storage = words[1];
    seen(static_before);
    seen(static_after);
    seen(own_before);
    seen(own_after);
    seen(own_last);
    if (!strcmp(storage, "stack"))
        deed.large ? stack_large(deed) : stack_small(deed);
    else if (!strcmp(storage, "room"))
        room(deed);
    else if (!strcmp(storage, "array"))
        array_of(deed.large ? LARGE : SMALL, deed);
    else if (!strcmp(storage, "static") && deed.large)
        ACCESS(static_large);
    else if (!strcmp(storage, "static"))
        ACCESS(static_small);
    else if (!strcmp(storage, "own") && deed.large)
        ACCESS(own_large);
    else if (!strcmp(storage, "own"))
        ACCESS(own_small);
    else if (!strcmp(storage, "scope"))
        in_scope(deed);
    else if (!strcmp(storage, "return"))
        returned(deed);
    else
        return 2;
    puts("done");
    return 0;
}
