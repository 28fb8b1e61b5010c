/* A loop counts with the wrong variable and writes behind an array on the heap.
 *
 * An interpreter keeps its variables and its arrays in tables that grow. `more_arrays` clears the
 * new entries, but counts up to the number of variables. With more variables than arrays it clears
 * what lies behind the table, also the C library's own notes, and the next allocation gives up.
 *
 * build: gcc -g -o heap_overflow heap_overflow.c
 * ends:  SIGABRT in calloc
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name {
    char text[24];
    int number;
    struct name *next;
    const char *kind;
};

static int variable_count = 48;
static int array_count;
static int **arrays;
static struct name *names;

static struct name *new_name(const char *text, int number) {
    struct name *name = malloc(sizeof *name);
    snprintf(name->text, sizeof name->text, "%s", text);
    name->number = number;
    name->kind = "array";
    name->next = names;
    names = name;
    return name;
}

static void more_arrays(void) {
    int old_count = array_count;
    int **old = arrays;
    array_count += 16;
    arrays = malloc(array_count * sizeof *arrays);
    new_name("last", array_count - 1);
    for (int i = 0; i < old_count; i++)
        arrays[i] = old[i];
    for (int i = old_count; i < variable_count; i++) /* ROOT: should be array_count */
        arrays[i] = NULL;
    free(old);
}

static struct name *find(const char *text) {
    for (struct name *name = names; name; name = name->next)
        if (name->kind[0] == 'a' && strcmp(name->text, text) == 0)
            return name;
    return NULL;
}

static int *use_array(int number, int length) {
    while (number >= array_count)
        more_arrays();
    if (!arrays[number])
        arrays[number] = calloc(length, sizeof **arrays);
    return arrays[number];
}

int main(void) {
    new_name("sums", 0);
    int *sums = use_array(0, 10);
    for (int i = 0; i < 10; i++)
        sums[i] = i * i;
    struct name *name = find("sums");
    printf("%s is array %d, sums[3] = %d\n", name->text, name->number, sums[3]);
    return 0;
}
