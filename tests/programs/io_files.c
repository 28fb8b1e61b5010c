// build: -O1
// build: -O1 -D_FILE_OFFSET_BITS=64 -static
// Files: pread/pwrite, vectors, seek and holes, truncate, locks, directories, links, splice, tee,
// sendfile, copy_file_range, fallocate, extended attributes refused or not, rename, stat of all kinds.
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }
int main(void)
{
    int fd = open("a", O_RDWR | O_CREAT | O_EXCL, 0640);
    CHECK(fd >= 0 && open("a", O_RDWR | O_CREAT | O_EXCL, 0640) == -1 && errno == EEXIST);
    struct iovec parts[2] = {{"hello ", 6}, {"world", 5}};
    CHECK(writev(fd, parts, 2) == 11 && pwrite(fd, "W", 1, 6) == 1);
    char text[64] = {0};
    CHECK(pread(fd, text, 64, 0) == 11);
    puts(text);
    CHECK(lseek(fd, 1 << 20, SEEK_SET) == 1 << 20 && write(fd, "end", 3) == 3);
    struct stat st;
    MUST(fstat(fd, &st));
    printf("size %ld mode %o links %ld blocks %s\n", (long)st.st_size, st.st_mode, (long)st.st_nlink, st.st_blocks < 2048 ? "sparse" : "full");
    MUST(ftruncate(fd, 11));
    MUST(link("a", "b"));
    MUST(symlink("a", "c"));
    MUST(mkdir("d", 0700));
    MUST(rename("b", "d/b"));
    CHECK(rmdir("d") == -1 && errno == ENOTEMPTY);
    MUST(stat("c", &st));
    CHECK(S_ISREG(st.st_mode) && st.st_nlink == 2);
    MUST(lstat("c", &st));
    CHECK(S_ISLNK(st.st_mode));
    MUST(mkfifo("f", 0600));
    struct dirent **entries;
    int n = scandir(".", &entries, NULL, by_name);
    for (int i = 0; i < n; i++) printf("%s %d\n", entries[i]->d_name, entries[i]->d_type);
    int p[2], q[2], out = open("out", O_RDWR | O_CREAT, 0600);
    MUST(pipe(p));
    MUST(pipe(q));
    off_t from = 0;
    loff_t at = 0;
    CHECK(sendfile(out, fd, &from, 5) == 5 && from == 5);
    CHECK(splice(fd, &at, p[1], NULL, 11, 0) == 11);
    CHECK(tee(p[0], q[1], 11, 0) == 11);
    CHECK(splice(p[0], NULL, out, NULL, 11, 0) == 11 && read(q[0], text, 64) == 11);
    loff_t one = 0, two = 100;
    ssize_t copied = copy_file_range(fd, &one, out, &two, 11, 0);
    CHECK(copied == 11 || (copied == -1 && (errno == EXDEV || errno == ENOSYS || errno == EINVAL)));
    memset(text, 0, sizeof text);
    CHECK(pread(out, text, 16, 0) == 16);
    puts(text);
    MUST(flock(fd, LOCK_EX));
    pid_t pid = fork();
    if (!pid) _exit(flock(open("a", O_RDONLY), LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK ? 0 : 1);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 5};
    MUST(fcntl(fd, F_SETLK, &lock));
    if (!(pid = fork())) {
        MUST(fcntl(fd, F_GETLK, &lock));
        _exit(lock.l_type == F_WRLCK && lock.l_pid == getppid() ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    struct statvfs vfs;
    MUST(statvfs(".", &vfs));
    struct timespec times[2] = {{1000, 5}, {2000, 6}};
    MUST(futimens(fd, times));
    MUST(fstat(fd, &st));
    printf("times %ld %ld\n", (long)st.st_atim.tv_sec, (long)st.st_mtim.tv_sec);
    CHECK(access("a", R_OK | W_OK) == 0 && access("none", F_OK) == -1 && errno == ENOENT);
    MUST(chdir("d"));
    int dir = open("..", O_RDONLY | O_DIRECTORY);
    CHECK(openat(dir, "a", O_RDONLY) >= 0 && unlinkat(dir, "c", 0) == 0);
    MUST(fchdir(dir));
    char path[PATH_MAX];
    CHECK(realpath("d/../a", path) && strcmp(strrchr(path, '/'), "/a") == 0);
    CHECK(read(dir, text, 1) == -1 && errno == EISDIR);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, (void *)8, 5) == -1 && errno == EFAULT);
    CHECK(write(1, (void *)8, 5) == -1 && errno == EFAULT);
    return ok();
}
