// build: -O1 -ldl
// Libraries that come and go: where they land, what a function of them answers.
#include "check.h"
#include <dlfcn.h>

int main(void)
{
    double sum = 0;
    for (int i = 0; i < 6; i++) {
        void *library = dlopen("libm.so.6", i % 2 ? RTLD_NOW : RTLD_LAZY);
        CHECK(library);
        double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
        CHECK(cosine);
        Dl_info info;
        CHECK(dladdr((void *)cosine, &info));
        sum += cosine(i + getpid() % 10);
        printf("cos at %p in %s at %p\n", (void *)cosine, info.dli_fname, info.dli_fbase);
        CHECK(dlclose(library) == 0);
        if (i == 2) free(malloc(1 << 20));
    }
    printf("sum %.17g\n", sum);
    CHECK(dlopen("libnone.so.1", RTLD_NOW) == NULL);
    puts(dlerror());
    return ok();
}
