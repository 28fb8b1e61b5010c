// build: -O1
// process_no_proc.c recorded and replayed: what it provokes is said there.
#include "../process_no_proc.c"
