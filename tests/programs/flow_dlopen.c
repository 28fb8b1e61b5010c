// build: -O1 -ldl -rdynamic
// library: plugin.c
// library: plugin_other.c
// dlopen, dlsym, dlclose and again: two builds of one plug-in end up at the same addresses in turn, so
// stale translations would give the other's answers. Thread-local storage and ifuncs in plug-ins.
#include "check.h"
#include <dlfcn.h>
#include <libgen.h>
int main(int argc, char **argv)
{
    (void)argc;
    char folder[4096], path[2][4200];
    strcpy(folder, argv[0]);
    dirname(folder);
    sprintf(path[0], "%s/plugin.so", folder);
    sprintf(path[1], "%s/plugin_other.so", folder);
    CHECK(!dlopen("/no/such.so", RTLD_NOW) && dlerror());
    for (int i = 0; i < 60; i++) {
        void *library = dlopen(path[i % 2], i % 3 ? RTLD_NOW : RTLD_LAZY);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        int (*value)(void) = (int (*)(void))dlsym(library, "value");
        int (*chosen)(void) = (int (*)(void))dlsym(library, "chosen");
        int number = i % 2 + 1;
        CHECK(value() == number * 1000 + number + 1);
        CHECK(value() == number * 1000 + number + 3);
        CHECK(chosen() == number);
        CHECK(!dlclose(library));
    }
    return ok();
}
