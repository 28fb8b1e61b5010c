/* Every kind of C value, seen from a call three levels in. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum color { RED, GREEN = 5, BLUE = -2 };
enum flags { READ = 1, WRITE = 2, RUN = 4 };

struct node {
    int key;
    struct node *next;
};

struct bits {
    unsigned low : 3;
    int middle : 7;
    unsigned long high : 40;
    _Bool flag : 1;
};

union number {
    uint32_t word;
    float real;
    unsigned char bytes[4];
};

typedef struct {
    char name[16];
    union number number;
    struct {
        short left, right;
    };
    struct bits bits;
    enum color color;
    double matrix[2][3];
    int (*function)(int);
    const char *title;
} record;

struct hidden;
int global_count = 42;
static long hidden_total = -7;
static const char *const words[] = {"alpha", "beta", NULL};
_Thread_local int per_thread = 99;
struct node chain[3] = {{1, &chain[1]}, {2, &chain[2]}, {3, NULL}};
record table[2];
volatile int sink;

int twice(int value) { return value * 2; }

__attribute__((noinline)) void stop_here(void) { sink++; }

__attribute__((noinline)) int innermost(record *item, int count, double ratio, unsigned char tag) {
    static int calls = 10;
    int local = count * 3;
    int array[4] = {1, 2, 3, count};
    int sized[count];
    struct node *at = chain;
    long double wide = 1.25L;
    float narrow = (float)ratio / 2;
    signed char small = -3;
    unsigned long long large = 0xfedcba9876543210ull;
    enum flags mode = READ | RUN;
    for (int i = 0; i < count; i++)
        sized[i] = i * i;
    {
        int local = 1000;
        calls++;
        sink += local;
        stop_here();
        sink += local;
    }
    return local + array[3] + sized[1] + at->key + (int)wide + (int)narrow + small + (int)large +
           mode + tag;
}

__attribute__((noinline)) int middle(int depth) {
    record item;
    memset(&item, 0, sizeof item);
    strcpy(item.name, "middle");
    item.number.real = 1.5f;
    item.left = -1;
    item.right = 12;
    item.bits.low = 5;
    item.bits.middle = -9;
    item.bits.high = 123456789012ul;
    item.bits.flag = 1;
    item.color = BLUE;
    item.matrix[1][2] = 2.5;
    item.function = twice;
    item.title = words[1];
    table[1] = item;
    hidden_total += depth;
    per_thread++;
    int result = innermost(&item, depth + 2, 3.5, 'x');
    return result + item.left;
}

int main(int argc, char **argv) { return middle(argc + 2) == 0; }
