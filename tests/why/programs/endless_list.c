/* A list that was linked to itself. build: gcc -g -O0; class: endless-loop; timeout: 1 */
#include <stdio.h>
struct node { int value; struct node *next; };
static struct node nodes[4];
static void link_up(int count)
{
    for (int i = 0; i < count; i++) {
        nodes[i].value = i;
        nodes[i].next = &nodes[(i + 1) % count]; /* ROOT */
    }
}
static int sum(const struct node *list)
{
    int total = 0;
    while (list) {
        total += list->value;
        list = list->next;
    }
    return total;
}
int main(void)
{
    link_up(4);
    printf("%d\n", sum(nodes));
    return 0;
}
