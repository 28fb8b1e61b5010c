// build: -O2
// screen: suspicious
// Texts are compared a word at a time, whatever stands behind their ends; for valgrind the program brings
// another way to do it, so it knows.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) int equal_texts(const char *one, const char *other, size_t length) {
    for (size_t at = 0; at < length; at += 8) {
        uint64_t left, right;
        memcpy(&left, one + at, 8);
        memcpy(&right, other + at, 8);
        if (left != right) {
            size_t rest = length - at;
            return rest < 8 && (left ^ right) << (64 - 8 * rest) == 0;
        }
    }
    return 1;
}

__attribute__((noinline, used)) int _vgr00000ZU_NONE_equal_texts(const char *one, const char *other, size_t length) {
    return memcmp(one, other, length) == 0;
}

int main(int count, char **words) {
    (void)words;
    int equal = 0;
    for (size_t length = 1; length < 40; length++) {
        char *texts[2];
        for (int which = 0; which < 2; which++)
            memset(texts[which] = malloc((length + 7) & ~7ul), count, length);
        if (equal_texts(texts[0], texts[1], length))
            equal++;
        free(texts[0]);
        free(texts[1]);
    }
    return equal != 39;
}
