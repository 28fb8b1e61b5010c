/* A file name that is too long smashes the stack.
 *
 * Lists sizes of files as an archiver would. `describe` puts a name together in a buffer of
 * fixed size; nobody checks how long the parts are. The program crashes only when `describe`
 * returns, by then far from the line that did the damage.
 *
 * build: gcc -g -fno-stack-protector -U_FORTIFY_SOURCE -o stack_smash stack_smash.c
 * ends:  SIGSEGV, at the return of `describe`
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *folder;
    const char *name;
    long size;
};

static long total;
static int listed;

static void count(const struct entry *entry) {
    total += entry->size;
    listed++;
}

static int is_hidden(const struct entry *entry) {
    return entry->name[0] == '.';
}

static void describe(const struct entry *entry) {
    char path[48];
    strcpy(path, entry->folder);
    strcat(path, "/");
    strcat(path, entry->name); /* ROOT: no look at the length */
    count(entry);
    printf("%8ld  %s\n", entry->size, path);
}

static char *long_name(int length) {
    char *name = malloc(length + 1);
    for (int i = 0; i < length; i++)
        name[i] = 'a' + i % 26;
    name[length] = 0;
    return name;
}

int main(int argc, char **argv) {
    int length = argc > 1 ? atoi(argv[1]) : 120;
    struct entry entries[] = {
        {"/srv/archive", "readme.txt", 812},
        {"/srv/archive", ".cache", 4096},
        {"/srv/archive/letters", "to-the-editor.txt", 2290},
        {"/srv/archive/letters", long_name(length), 77},
    };
    int n = sizeof entries / sizeof *entries;
    for (int i = 0; i < n; i++)
        if (!is_hidden(&entries[i]))
            describe(&entries[i]);
    printf("%d files, %ld bytes\n", listed, total);
    return 0;
}
