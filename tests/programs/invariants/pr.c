// Memory: going back makes the position negative, a tab is then wider than its buffer, and what lies behind is
// overwritten.
// learn: abc | a.b.c | ab.d | a.b | .a.b.c | abcdef. | a<b | ab<.c
// fail: a<<<<.z
#include <stdio.h>
#include <string.h>

enum { WIDTH = 8 };

static struct {
    char clump[WIDTH];
    int (*next)(int);
} page;

static int position;

static int twice(int n) {
    return 2 * n;
}

static int clump(char c) {
    char *at = page.clump;
    int width = 1;
    if (c == '.') {
        width = WIDTH - position % WIDTH;
        for (int i = 0; i < width; i++)
            *at++ = ' ';
    } else if (c == '<') {
        width = -1;
        *at = '<';
    } else {
        *at = c;
    }
    position += width;
    return width > 0 ? page.clump[0] : 0;
}

int main(int argc, char **argv) {
    page.next = twice;
    int sum = 0;
    for (char *c = argv[1]; *c; c++) {
        sum += clump(*c);
        sum += page.next(1); // FAULT: who has written this?
    }
    printf("%d\n", sum);
    return argc != 2;
}
