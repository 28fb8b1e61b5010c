/* An error path returns NULL and nobody looks.
 *
 * A backup tool reads a folder that it may not read. `read_folder` answers NULL for that; two
 * functions hand the answer on, and the length of it is taken far away.
 *
 * build: gcc -g -o null_from_error null_from_error.c
 * ends:  SIGSEGV in name_length
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct folder {
    const char *path;
    int mode;
    const char *contents;
};

static struct folder folders[] = {
    {"/home", 0755, "ann\0bob\0"},
    {"/home/ann", 0700, "letter\0list\0"},
    {"/root", 0, "secret\0"},
    {"/tmp", 0777, "x\0"},
};

static int may_read(const struct folder *folder) {
    return folder->mode & 0444;
}

static struct folder *find_folder(const char *path) {
    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strcmp(folders[i].path, path) == 0)
            return &folders[i];
    return NULL;
}

static const char *read_folder(const char *path) {
    struct folder *folder = find_folder(path);
    if (!folder || !may_read(folder))
        return NULL; /* ROOT: the caller does not expect that */
    return folder->contents;
}

static const char *contents_of(const char *path, int level) {
    const char *contents = read_folder(path);
    if (level > 0)
        printf("%*s%s\n", level * 2, "", path);
    return contents;
}

static int name_length(const char *names) {
    int length = 0;
    while (names[length])
        length++;
    return length;
}

static int add(const char *path, int level) {
    const char *names = contents_of(path, level);
    int count = 0;
    for (int length; (length = name_length(names)) > 0; names += length + 1)
        count++;
    return count;
}

int main(void) {
    const char *paths[] = {"/home", "/home/ann", "/root", "/tmp"};
    int count = 0;
    for (int i = 0; i < 4; i++)
        count += add(paths[i], i);
    printf("%d names\n", count);
    return 0;
}
