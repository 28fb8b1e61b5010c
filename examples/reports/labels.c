// A label that is too long runs over its neighbour, an article, whose name is then used as a pointer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct article {
    const char *name;
    int pieces;
};

static void write_label(char *label, int length)
{
    for (int i = 0; i < length; i++)
        label[i] = "0,41,42,"[i % 8];
}

int main(void)
{
    char *label = malloc(24);
    struct article *tea = malloc(sizeof *tea);
    *tea = (struct article){"tea", 3};
    write_label(label, 40); // 24 was meant
    printf("%d pieces of %c\n", tea->pieces, tea->name[0]);
    return 0;
}
