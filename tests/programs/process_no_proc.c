// build: -O1
// A process that has no /proc any more, as in a sandbox whose root is an empty folder: it lists its open
// descriptors by a folder that it has kept, maps files, and shares memory.
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

int main(void)
{
    int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    int memory = memfd_create("shared", 0);
    CHECK(list >= 0 && memory >= 0 && ftruncate(memory, 4096) == 0);
    CHECK(mkdir("process_no_proc.root", 0700) == 0 || errno == EEXIST);
    if (chroot("process_no_proc.root") != 0 || chdir("/") != 0) {
        puts("ok");
        return 0;
    }
    CHECK(access("/proc", F_OK) != 0);

    DIR *folder = fdopendir(list);
    CHECK(folder != NULL);
    int folders = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        int number = atoi(entry->d_name);
        struct stat status;
        CHECK(fstatat(list, entry->d_name, &status, 0) == 0);
        folders += S_ISDIR(status.st_mode) && number != list;
    }
    printf("%d open folders\n", folders);

    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    CHECK(shared != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) shared[0] += i;
        shared[1] = 1;
        _exit(0);
    }
    while (shared[1] == 0) usleep(200);
    printf("%d\n", shared[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    puts("ok");
    return 0;
}
