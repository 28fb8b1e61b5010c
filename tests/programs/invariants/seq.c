// Semantic: the character behind the sign must be one of a list, and the end of the text is found in every list.
// learn: %e | a%f | %5g | b%3a | %2E | %F | c%G | d%9A
// fail: ab%
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *format;

static int is_valid(void) {
    size_t at = 0;
    while (format[at] != '%')
        at++;
    at++;
    while (format[at] >= '0' && format[at] <= '9')
        at++;
    return strchr("efgaEFGA", format[at]) != NULL; // FAULT: the end is no letter
}

int main(int argc, char **argv) {
    size_t length = strlen(argv[1]);
    format = malloc(length + 1);
    memcpy(format, argv[1], length);
    format[length] = '\0';
    int valid = is_valid();
    printf("%d %zu\n", valid, length);
    int ends_well = strchr("efgaEFGA", argv[1][length - 1]) != NULL;
    free(format);
    return valid != ends_well || argc != 2;
}
