/* A copy that is not deep enough is freed twice.
 *
 * A reader of markup keeps a stack of copies of open elements. `copy_element` copies the
 * attributes one by one, but the script that an attribute may carry only as a pointer. When both
 * the element and its copy go away, the script is freed twice and the C library gives up.
 *
 * build: gcc -g -o double_free double_free.c
 * ends:  SIGABRT in free
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct script {
    char text[40];
    int lines;
};

struct attribute {
    char name[16];
    struct script *script;
    struct attribute *next;
};

struct element {
    char name[16];
    struct attribute *attributes;
};

static struct element *stack[8];
static int depth;

static struct script *new_script(const char *text) {
    struct script *script = malloc(sizeof *script);
    snprintf(script->text, sizeof script->text, "%s", text);
    script->lines = 1;
    return script;
}

static struct attribute *new_attribute(const char *name, struct script *script) {
    struct attribute *attribute = malloc(sizeof *attribute);
    snprintf(attribute->name, sizeof attribute->name, "%s", name);
    attribute->script = script;
    attribute->next = NULL;
    return attribute;
}

static struct element *new_element(const char *name) {
    struct element *element = calloc(1, sizeof *element);
    snprintf(element->name, sizeof element->name, "%s", name);
    return element;
}

static struct attribute *copy_attributes(const struct attribute *from) {
    if (!from)
        return NULL;
    struct attribute *copy = malloc(sizeof *copy);
    *copy = *from; /* ROOT: the script is shared, not copied */
    copy->next = copy_attributes(from->next);
    return copy;
}

static struct element *copy_element(const struct element *from) {
    struct element *copy = new_element(from->name);
    copy->attributes = copy_attributes(from->attributes);
    return copy;
}

static void free_attributes(struct attribute *attribute) {
    while (attribute) {
        struct attribute *next = attribute->next;
        free(attribute->script);
        free(attribute);
        attribute = next;
    }
}

static void free_element(struct element *element) {
    free_attributes(element->attributes);
    free(element);
}

static void push(const struct element *element) {
    stack[depth++] = copy_element(element);
}

static void pop(void) {
    free_element(stack[--depth]);
}

int main(void) {
    struct element *font = new_element("font");
    font->attributes = new_attribute("color", NULL);
    font->attributes->next = new_attribute("onclick", new_script("alert(1)"));
    push(font);
    printf("open: %s\n", stack[depth - 1]->name);
    pop();
    /* The element turns out to be empty and is trimmed. */
    free_element(font);
    puts("done");
    return 0;
}
