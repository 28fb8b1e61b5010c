// The other build of the plug-in: same names, same shape, other answers.
#define VALUE 2
#include "plugin.c"
