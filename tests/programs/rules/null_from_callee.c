// After the reference's tar bug: a function returns NULL, and the string is measured.
#include <stddef.h>
#include <string.h>

static char *savedir(const char *name) {
    if (name[0] == 'x')
        return NULL;
    return "contents";
}

int main(void) {
    char *entries = savedir("x");
#ifdef FIXED
    if (entries == NULL)
        return 0;
#endif
    size_t length = strlen(entries); // FINDS null-pointer
    return length > 100;
}
