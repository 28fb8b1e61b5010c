// build: -O1 -pthread
// /proc/self/{exe,maps,cmdline,auxv,task,comm,environ,stat,status,fd} tell of the guest, by every
// path that leads there.
#include "check.h"
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
static size_t slurp(const char *path, char *into, size_t size)
{
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    size_t total = 0;
    ssize_t n;
    while ((n = read(fd, into + total, size - 1 - total)) > 0) total += n;
    into[total] = 0;
    close(fd);
    return total;
}
static int global;
static int mapped(void *address, const char *mode, const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int found = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char bits[8];
        CHECK(sscanf(line, "%lx-%lx %7s", &from, &to, bits) == 3);
        if ((unsigned long)address >= from && (unsigned long)address < to) {
            CHECK(strncmp(bits, mode, 3) == 0);
            CHECK(!name || strstr(line, name));
            found++;
        }
    }
    fclose(maps);
    return found == 1;
}
static void *sleeper(void *arg) { pause(); return arg; }
static int tasks(const char *path)
{
    DIR *d = opendir(path);
    CHECK(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}
int main(int argc, char **argv)
{
    static char text[1 << 16];
    (void)argc;
    CHECK(slurp("/proc/self/cmdline", text, sizeof text) == strlen(argv[0]) + 1);
    CHECK(strcmp(text, argv[0]) == 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", getpid());
    CHECK(slurp(path, text, sizeof text) > 0 && strcmp(text, argv[0]) == 0);
    snprintf(path, sizeof path, "/proc/%d/exe", getpid());
    memset(text, 0, 4096);
    CHECK(readlink(path, text, 4095) > 0 && strcmp(text, argv[0]) == 0);
    slurp("/proc/self/comm", text, sizeof text);
    CHECK(strcmp(text, "proc_self\n") == 0);
    prctl(PR_GET_NAME, text);
    CHECK(strcmp(text, "proc_self") == 0);
    prctl(PR_SET_NAME, "renamed");
    slurp("/proc/self/comm", text, sizeof text);
    CHECK(strcmp(text, "renamed\n") == 0);
    CHECK(mapped((void *)main, "r-x", argv[0]));
    CHECK(mapped(&global, "rw-", NULL));
    int local;
    CHECK(mapped(&local, "rw-", "[stack]"));
    CHECK(mapped(sbrk(0) - 8, "rw-", "[heap]") || sbrk(4096) == (void *)-1 ||
          mapped(sbrk(0) - 8, "rw-", "[heap]"));
    size_t size = slurp("/proc/self/auxv", text, sizeof text);
    CHECK(size % 16 == 0);
    int entries = 0;
    for (Elf64_auxv_t *a = (Elf64_auxv_t *)text; a->a_type; a++, entries++)
        if (a->a_type >= AT_PHDR && a->a_type <= AT_EGID)
            CHECK(getauxval(a->a_type) == a->a_un.a_val);
    CHECK(entries > 10);
    slurp("/proc/self/environ", text, sizeof text);
    CHECK(memmem(text, sizeof text, "WHYDUNIT_TEST=value with spaces", 32));
    CHECK(tasks("/proc/self/task") == 1);
    pthread_t t[3];
    for (int i = 0; i < 3; i++) CHECK(!pthread_create(&t[i], 0, sleeper, 0));
    printf("tasks %d\n", tasks("/proc/self/task"));
    for (int i = 0; i < 3; i++) pthread_cancel(t[i]), pthread_join(t[i], 0);
    int fd = open("/proc/self/exe", O_RDONLY);
    char magic[4];
    CHECK(read(fd, magic, 4) == 4 && memcmp(magic, "\177ELF", 4) == 0);
    printf("descriptors %d\n", tasks("/proc/self/fd"));
    return ok();
}
