// What a program does with the C library all day.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int compare(const void *one, const void *other) {
    return *(const int *)one - *(const int *)other;
}

int main(void) {
    int *numbers = malloc(100 * sizeof *numbers);
    for (int i = 0; i < 100; i++)
        numbers[i] = (i * 37) % 101;
    qsort(numbers, 100, sizeof *numbers, compare);
    char line[200];
    snprintf(line, sizeof line, "%5d %-8s %.3f %c", numbers[3], "text", 2.5, 'x');
    for (char *at = line; *at; at++)
        *at = toupper((unsigned char)*at);
    char *copy = strdup(line), *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        printf("%s\n", word);
    FILE *file = tmpfile();
    if (file) {
        fprintf(file, "%s\n%d\n", line, 5);
        rewind(file);
        char *read = NULL;
        size_t room = 0;
        while (getline(&read, &room, file) > 0)
            printf("%zu\n", strlen(read));
        free(read);
        fclose(file);
    }
    struct tm when;
    time_t now = 1000000;
    gmtime_r(&now, &when);
    strftime(line, sizeof line, "%Y-%m-%d", &when);
    printf("%s %ld %g\n", line, strtol("42", NULL, 10), strtod("2.5", NULL));
    free(copy);
    free(numbers);
    return 0;
}
