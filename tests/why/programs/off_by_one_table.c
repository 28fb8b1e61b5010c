/* Months are counted from 1, the table from 0. build: gcc -g -O0; class: null-pointer,wild-pointer,out-of-bounds */
#include <stdio.h>
static const char *const months[13] = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *name_of(int month)
{
    return months[month]; /* ROOT */
}
int main(void)
{
    for (int month = 1; month <= 12; month++)
        putchar(name_of(month)[0]);
    putchar('\n');
    return 0;
}
