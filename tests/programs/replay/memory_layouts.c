// Tables over most of the address space, as sanitizers have them.
#include "../memory_layouts.c"
