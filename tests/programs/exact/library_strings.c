/* build: -O1 -static
 * The string functions of the library, with lengths and alignments around their vector sizes. */
#include <stdlib.h>
#include <string.h>

int main(void) {
    static char room[512], other[512];
    int sum = 0;
    for (int length = 0; length < 140; length += 7) {
        memset(room, 'a' + length % 20, 300);
        room[length + 1] = 0;
        strcpy(other + length % 9, room);
        memmove(room + 3, room, 200);
        sum += (int)strlen(other + length % 9) + memcmp(room, other, length + 1);
        sum += strchr(room, 0) - room;
        sum += strstr(other + 9, "zz") != 0;
    }
    return sum & 127;
}
