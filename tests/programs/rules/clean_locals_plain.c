// build: -O0 -fno-stack-protector
// The same as clean_locals.c, not optimised: there every variable is known by its bounds.
#include "clean_locals.c"
