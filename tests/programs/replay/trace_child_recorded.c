// build: -O1
// trace_child.c recorded and replayed: what it provokes is said there.
#include "../trace_child.c"
