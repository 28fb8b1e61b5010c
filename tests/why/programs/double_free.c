/* A copied structure shares its buffer. build: gcc -g -O0; class: double-free */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct buffer { char *bytes; int size; };
static struct buffer copy(const struct buffer *of)
{
    struct buffer made = *of; /* ROOT */
    return made;
}
static void drop(struct buffer *buffer)
{
    free(buffer->bytes);
    buffer->bytes = NULL;
}
int main(void)
{
    struct buffer one = {malloc(40), 40};
    strcpy(one.bytes, "hello");
    struct buffer two = copy(&one);
    printf("%s\n", two.bytes);
    drop(&one);
    drop(&two);
    return 0;
}
