// The C library's vector code reads past the ends of strings on purpose.
#include <stdlib.h>
#include <string.h>

int main(void) {
    int total = 0;
    for (int size = 1; size < 70; size++) {
        char *text = malloc(size), *other = malloc(size);
        memset(text, 'a', size - 1);
        text[size - 1] = 0;
        strcpy(other, text);
        total += strlen(text) + (strchr(text, 'b') == NULL) + (strcmp(text, other) == 0);
        total += memchr(text, 0, size) != NULL;
        total += memcmp(text, other, size) == 0;
        total += strstr(text, "b") == NULL;
        total += strrchr(other, 'a') != NULL;
        if (strncmp(text, "aaaa", 4) == 0)
            total++;
        free(text);
        free(other);
    }
    return total == 0;
}
