// build: -O1
// build: -O1 -static
// Where everything is: arguments, environment, auxiliary vector, stack, heap, mappings, code.
#include "check.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>

extern char **environ;

int main(int argc, char **argv)
{
    printf("main %p stack %p argv %p %p environ %p %p\n", (void *)main, (void *)&argc, (void *)argv,
           (void *)argv[0], (void *)environ, (void *)environ[0]);
    printf("break %p small %p large %p\n", sbrk(0), malloc(24), malloc(1 << 20));
    void *map = mmap(NULL, 12345, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    printf("map %p printf %p\n", map, (void *)printf);
    char **end = environ;
    while (*end) end++;
    for (Elf64_auxv_t *entry = (Elf64_auxv_t *)(end + 1); entry->a_type != AT_NULL; entry++)
        printf("auxiliary %lu: %lx\n", (unsigned long)entry->a_type, (unsigned long)entry->a_un.a_val);
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    char line[300];
    int lines = 0;
    while (fgets(line, sizeof line, maps)) {
        if (lines < 3 || strstr(line, "[stack]") || strstr(line, "[heap]")) fputs(line, stdout);
        lines++;
    }
    printf("%d mappings\n", lines);
    return ok();
}
