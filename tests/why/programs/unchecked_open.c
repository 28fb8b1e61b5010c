/* A file that is not there. build: gcc -g -O0; class: null-pointer */
#include <stdio.h>
static FILE *config(const char *folder)
{
    char path[64];
    snprintf(path, sizeof path, "%s/settings.missing", folder);
    return fopen(path, "r"); /* ROOT */
}
int main(void)
{
    FILE *file = config("/nonexistent");
    char line[64];
    if (fgets(line, sizeof line, file))
        puts(line);
    return 0;
}
