/* build: -O1 -static
 * Formatted output and input: printf to a pipe or file, snprintf, strtod, sscanf. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char line[100];
    int sum = 0;
    for (int i = 0; i < 5; i++) {
        snprintf(line, sizeof line, "%d %08x %s %.3f", i * 1001, i * 77, "text", i / 3.0);
        int number;
        unsigned hexadecimal;
        float fraction;
        sscanf(line, "%d %x %*s %f", &number, &hexadecimal, &fraction);
        sum += number + (int)hexadecimal + (int)(strtod("2.25e1", 0) * fraction);
        printf("%s\n", line);
    }
    return sum & 127;
}
