// build: -O2 -fno-builtin
// build: -O2 -fno-builtin -static
// The libc's string functions, chosen by ifunc after CPUID: all of them, at all alignments, near the
// end of a page, against simple loops.
#include "check.h"
#include <sys/mman.h>
#include <wchar.h>
static int chosen_one(void) { return 1; }
static void *choose(void) { return (void *)chosen_one; }
int chosen(void) __attribute__((ifunc("choose")));
int main(void)
{
    CHECK(chosen() == 1);
    char *area = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mprotect(area + 8192, 4096, PROT_NONE));
    char *end = area + 8192;
    uint64_t sum = 0;
    for (int size = 0; size < 300; size++) {
        char *s = end - size - 1;
        for (int i = 0; i < size; i++) s[i] = (char)('a' + (i * 7 + size) % 26);
        s[size] = 0;
        CHECK(strlen(s) == (size_t)size && strnlen(s, 100) == (size_t)(size < 100 ? size : 100));
        CHECK(memchr(s, 0, (size_t)size + 1) == s + size && strchr(s, 0) == s + size);
        CHECK(rawmemchr(s, 0) == s + size && strchrnul(s, '!') == s + size);
        char *found = strrchr(s, 'c');
        sum = sum * 31 + (found ? (uint64_t)(found - s) : 999);
        char copy[400];
        strcpy(copy, s);
        CHECK(strcmp(copy, s) == 0 && memcmp(copy, s, (size_t)size + 1) == 0 && strcasecmp(copy, s) == 0);
        if (size) {
            copy[size - 1]++;
            CHECK(strcmp(copy, s) > 0 && memcmp(copy, s, (size_t)size) > 0 && strncmp(copy, s, (size_t)size - 1) == 0);
        }
        memset(copy, size, sizeof copy);
        memmove(copy + 5, copy, 300);
        memcpy(area + size, s, (size_t)size + 1);
        CHECK(strcmp(area + size, s) == 0);
        stpcpy(copy, "ab");
        strncat(copy, s, 10);
        sum = sum * 31 + strspn(s, "abcdefghijk") + strcspn(s, "xyz");
        CHECK((strstr(s, "hov") != NULL) == (memmem(s, (size_t)size, "hov", 3) != NULL));
        wchar_t wide[310];
        for (int i = 0; i < size; i++) wide[i] = s[i];
        wide[size] = 0;
        CHECK(wcslen(wide) == (size_t)size && wmemchr(wide, 0, (size_t)size + 1) == wide + size);
    }
    printf("%016lx\n", sum);
    return ok();
}
