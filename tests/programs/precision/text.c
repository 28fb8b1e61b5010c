// String functions: a character of a text that strcpy and strcat put together comes from one of the
// parts, not from all of them.
// build: gcc -g -O0 -fno-builtin
// ask: --at text.c:28 --value path[24] --kind thin
#include <stdio.h>
#include <string.h>

static char user[16], folder[32], path[64];

static void fill(char *into, const char *from, int shift) {
    int i;
    for (i = 0; from[i]; i++)
        into[i] = from[i] + shift;
    into[i] = 0;
}

static void join(void) {
    strcpy(path, "/home/");
    strcat(path, user);
    strcat(path, "/");
    strcat(path, folder);
}

int main(void) {
    fill(user, "administrator", 0);
    fill(folder, "letters and more", 0);
    join();
    puts(path);
    return path[24] == 0;
}
