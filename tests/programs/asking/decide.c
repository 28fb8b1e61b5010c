/* Decisions: a call behind a condition, a case that was not taken, functions that were never called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void deeper(void) {
    puts("deep"); // deep
}
static void f(void) {
    fprintf(stderr, "bad\n"); // inner
    if (getenv("NOT_SET"))
        deeper();
    exit(1); // exit
}
static int limit(int n) {
    return n * 2; // limit
}
void nobody(void) {
    puts("nobody"); // nobody
}
static void choose(int n) {
    switch (n) { // switch
    case 0: puts("none"); break;
    case 1: puts("one"); break;
    case 2: puts("two"); break;
    case 3: puts("three"); break;
    case 4: puts("four"); break;
    case 8: puts("eight"); break; // eight
    }
}
int main(int argc, char **argv) {
    int most = limit(argc - 1); // most
    int given = (int)strlen(argv[1]); // given
    if (given > most) // if
        f(); // call
    choose(given); // late
    return 0;
}
