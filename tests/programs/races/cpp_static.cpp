// finds: data-race
// A singleton: a local static, which the compiler guards, or a pointer that is looked at.
#include "twin.h"
struct Table { int values[4]; Table() { for (int &value : values) value = 7; } };
static Table *made;
static Table *table()
{
    RACY(if (!made) made = new Table; return made;)
    CLEAN(static Table only; return &only;)
}
static void *work(void *unused) { sink(table()->values[2]); return unused; }
int main() { two(work, work); }
