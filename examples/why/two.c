/* Ends with an exit code that a function computed; to be built without debug information. */
#include <stdlib.h>
__attribute__((noinline)) static int half(int of) {
    return of / 2;
}
int main(int count, char **words) {
    return half(count + 1 + (words[0][0] == 0));
}
