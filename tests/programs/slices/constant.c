/* Tables that nobody can write to: an entry stands for its index. `chosen` makes the index, so it is in the
 * thin slice of every program here but those named `_not`. */
#include "slices.h"
static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
static const u64 squares[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};
static u64 changing[16] = {7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0};
HELPER u64 chosen(u64 x) { u64 r = x * 5 + 3; UNKNOWN(r); return r; }

/* A digit is the number that it shows. */
PROGRAM digit(u64 x) { volatile char text = digits[chosen(x) % 36]; return text; }
/* So are all of them. */
PROGRAM printed(u64 x) {
    char text[32];
    u64 at = 32, n = chosen(x) * 977, r = 0;
    do { text[--at] = digits[n % 10]; n /= 10; } while (n);
    while (at < 32) r = r * 256 + (u8)text[at++];
    return r;
}
/* An operand. */
PROGRAM added(u64 x) { const u64 *of = squares; UNKNOWN(of); return x + of[chosen(x) & 15]; }
/* What can be written is what was written. */
PROGRAM variable_not(u64 x) { u64 *of = changing; UNKNOWN(of); of[3] = x; return of[chosen(x) & 15]; }
#define LIST(P) P(digit) P(printed) P(added) P(variable_not)
RUN(LIST)
