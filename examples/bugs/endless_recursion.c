/* A parser calls itself for a nested list and forgets to step over the parenthesis.
 *
 * Lists of numbers are added up: (1 2 (3 4) 5). A list within a list is added up by the same
 * function, which is given the text at the parenthesis instead of behind it, and so finds a list
 * within the list again, and again.
 *
 * build: gcc -g -o endless_recursion endless_recursion.c
 * ends:  SIGSEGV, the stack is full
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

struct result {
    long sum;
    int deepest;
    const char *rest;
};

static const char *skip_blanks(const char *text) {
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static struct result add_list(const char *text, int level);

/* One number, or a list within the list. */
static struct result add_item(const char *text, int level) {
    if (*text == '(')
        return add_list(text, level + 1); /* ROOT: should be text + 1 */
    struct result result = {.deepest = level};
    char *end;
    result.sum = strtol(text, &end, 10);
    result.rest = end == text ? text + 1 : end;
    return result;
}

/* Everything up to the closing parenthesis. */
static struct result add_list(const char *text, int level) {
    struct result all = {.sum = 0, .deepest = level};
    text = skip_blanks(text);
    while (*text && *text != ')') {
        struct result item = add_item(text, level);
        all.sum += item.sum;
        if (item.deepest > all.deepest)
            all.deepest = item.deepest;
        text = skip_blanks(item.rest);
    }
    all.rest = *text ? text + 1 : text;
    return all;
}

int main(void) {
    static const char *const lists[] = {"1 2 3)", "10 20 30 40)", "1 2 (3 4) 5)"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct result result = add_list(lists[i], 0);
        printf("%ld, %d deep\n", result.sum, result.deepest);
    }
    return 0;
}
