// build: -O1
// Directories and metadata: order of entries, inode numbers, times, free space, links; read again by
// getdents in small buffers.
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

int main(void)
{
    unsigned short names[12];
    CHECK(getrandom(names, sizeof names, 0) == sizeof names);
    MUST(mkdir("folder.tmp", 0700));
    MUST(chdir("folder.tmp"));
    for (int i = 0; i < 12; i++) {
        char name[20];
        snprintf(name, sizeof name, "f%d-%04x", i, names[i]);
        int descriptor = open(name, O_CREAT | O_WRONLY, 0600);
        MUST(descriptor);
        CHECK(write(descriptor, names, (size_t)i) == i);
        close(descriptor);
    }
    DIR *folder = opendir(".");
    CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat about;
        MUST(lstat(entry->d_name, &about));
        printf("%s inode %lu size %ld changed %ld.%09ld\n", entry->d_name[0] == '.' ? "dot" : entry->d_name,
               (unsigned long)about.st_ino, (long)about.st_size, (long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
    }
    closedir(folder);
    int descriptor = open(".", O_RDONLY | O_DIRECTORY);
    MUST(descriptor);
    char buffer[120];
    long calls = 0, bytes = 0;
    for (long got; (got = syscall(SYS_getdents64, descriptor, buffer, sizeof buffer)) != 0; calls++) {
        MUST(got);
        bytes += got;
    }
    struct statvfs space;
    MUST(statvfs(".", &space));
    printf("%ld bytes in %ld calls, %lu free\n", bytes, calls, (unsigned long)space.f_bavail);
    struct statx extended;
    MUST(statx(AT_FDCWD, ".", 0, STATX_ALL, &extended));
    printf("born %lld.%u\n", (long long)extended.stx_btime.tv_sec, extended.stx_btime.tv_nsec);
    MUST(symlink("nowhere", "link"));
    CHECK(readlink("link", buffer, sizeof buffer) == 7);
    MUST(chdir(".."));
    CHECK(system("rm -r folder.tmp") == 0);
    return ok();
}
