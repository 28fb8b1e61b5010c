// build: -O1
// memory_read_file.c recorded and replayed: what it provokes is said there.
#include "../memory_read_file.c"
