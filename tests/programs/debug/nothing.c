// NULL pointer: `folder_names` gives NULL for a folder that cannot be read, line 11, and `count` does not expect it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct folder { const char *path; int readable; const char *names; };
static struct folder folders[] = {{"/home", 1, "ann"}, {"/tmp", 1, "x"}, {"/root", 0, "key"}};

static const char *folder_names(const struct folder *folder) {
    if (!folder->readable)
        return 0;
    return folder->names;
}

static int count(const char *names) {
    int length = 0;
    while (names[length])
        length++;
    return length;
}

int main(void) {
    int total = 0;
    for (int i = 0; i < 3; i++) {
        const char *names = folder_names(&folders[i]);
        total += count(names);
    }
    printf("%d\n", total);
    return 0;
}
