// finds: data-race
// Two threads set neighbouring bit-fields of one word, or two bytes of it.
#include "twin.h"
static volatile struct { TWIN(unsigned one : 4, unsigned char one); TWIN(unsigned other : 4, unsigned char other); } both;
static void *first(void *unused) { for (int i = 0; i < 50; i++) both.one = i & 7; return unused; }
static void *second(void *unused) { for (int i = 0; i < 50; i++) both.other = i & 7; return unused; }
int main(void) { two(first, second); return 0; }
