/* main returns what a check said. build: gcc -g -O0; class: exit-code */
#include <stdio.h>
static int check(const char *text)
{
    int depth = 0;
    for (; *text; text++) {
        if (*text == '(')
            depth++;
        if (*text == ']') /* ROOT */
            depth--;
    }
    return depth;
}
int main(void)
{
    int bad = check("(a(b))");
    if (bad)
        printf("unbalanced\n");
    return bad;
}
