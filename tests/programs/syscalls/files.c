// build: -O1 -Wall -Wno-unused-result
// Files, folders, pipes and their attributes; in the folder that the argument names, or else /tmp.
#include "call.h"
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>

static char name[300], other_name[300];

static void reading(int fd) {
    call(SYS_read, fd, room(100), 40);
    call(SYS_read, fd, edge(10), 40);
    call(SYS_read, -1, room(10), 10);
    call(SYS_pread64, fd, room(100), 30, 5);
    struct iovec *pieces = room(sizeof *pieces * 3);
    for (int i = 0; i < 3; i++) pieces[i] = (struct iovec){room(20), 20};
    lseek(fd, 0, SEEK_SET);
    call(SYS_readv, fd, pieces, 3);
    call(SYS_preadv, fd, pieces, 2, 7, 0);
    call(SYS_preadv2, fd, pieces, 2, 9, 0, 0);
    call(SYS_preadv, fd, pieces, 2000, 7, 0);
    // The vector itself is overwritten by what it describes.
    struct iovec *eaten = room(sizeof *eaten * 2);
    eaten[0] = (struct iovec){eaten, 32};
    eaten[1] = (struct iovec){room(20), 20};
    call(SYS_preadv, fd, eaten, 2, 0, 0);
}

static void moving(int fd, int other) {
    int *ends = room(8);
    call(SYS_pipe, ends);
    call(SYS_pipe, edge(4));
    int *more = room(8);
    call(SYS_pipe2, more, O_CLOEXEC);
    int64_t *from = room(8), *to = room(8);
    *from = 3;
    call(SYS_sendfile, other, fd, from, 10);
    call(SYS_sendfile, -1, fd, from, 10);
    *from = 0;
    call(SYS_splice, fd, from, ends[1], NULL, 16, 0);
    *to = 2;
    call(SYS_splice, ends[0], NULL, other, to, 8, 0);
    call(SYS_tee, ends[0], more[1], 4, 0);
    *from = *to = 1;
    call(SYS_copy_file_range, fd, from, other, to, 20, 0);
    struct iovec *pieces = room(sizeof *pieces * 2);
    pieces[0] = (struct iovec){room(3), 3};
    pieces[1] = (struct iovec){room(30), 30};
    call(SYS_vmsplice, ends[0], pieces, 2, 0);
    call(SYS_vmsplice, ends[1], pieces, 2, 0);
    call(SYS_ioctl, ends[0], FIONREAD, room(4));
    char *middle = edge(3);
    call(SYS_read, ends[0], middle, 20);
}

static void state(int fd) {
    call(SYS_stat, name, room(144));
    call(SYS_stat, name, edge(50));
    call(SYS_stat, "/nowhere", room(144));
    call(SYS_fstat, fd, room(144));
    call(SYS_lstat, name, room(144));
    call(SYS_newfstatat, AT_FDCWD, name, room(144), 0);
    call(SYS_statx, AT_FDCWD, name, 0, 0xfff, room(256));
    call(SYS_statfs, "/", room(120));
    call(SYS_fstatfs, fd, room(120));
    struct stat *root = room(sizeof *root);
    stat("/", root);
    call(SYS_ustat, root->st_dev, room(32));
    call(SYS_getcwd, room(4096), 4096);
    call(SYS_getcwd, room(4), 1);
    call(SYS_readlink, "/proc/self/exe", room(4096), 4096);
    call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", room(8), 8);
    call(SYS_sysfs, 2, 0, room(100));
    call(SYS_sysfs, 3);
    uint64_t *range = room(16);
    range[0] = range[1] = 0;
    call(SYS_cachestat, fd, range, room(40), 0);
    call(SYS_file_getattr, AT_FDCWD, name, room(64), 24, 0);
    call(SYS_file_getattr, AT_FDCWD, name, room(64), 48, 0);
    call(SYS_file_getattr, AT_FDCWD, name, room(64), 8, 0);
    unsigned *handle = room(200);
    handle[0] = 4;
    call(SYS_name_to_handle_at, AT_FDCWD, name, handle, room(4), 0);
    handle[0] = 128;
    call(SYS_name_to_handle_at, AT_FDCWD, name, handle, room(4), 0);
    handle = room(200);
    handle[0] = 100;
    call(SYS_name_to_handle_at, AT_FDCWD, name, handle, room(8), 1);
    call(SYS_lookup_dcookie, 1, room(100), 100);
}

static void mounts(void) {
    uint32_t *asked = room(256 + 0x100);
    call(SYS_statx, AT_FDCWD, "/", 0, 0x4000, asked); // the number of the mount
    uint64_t mount;
    memcpy(&mount, (char *)asked + 144, 8);
    struct { uint32_t size, spare; uint64_t id, parameter; } *request = room(24);
    *request = (typeof(*request)){24, 0, mount, 0x3f};
    call(SYS_statmount, request, room(4096), 4096, 0);
    call(SYS_statmount, request, room(64), 40, 0);
    *request = (typeof(*request)){24, 0, ~0ull, 0};
    call(SYS_listmount, request, room(800), 100, 0);
    call(SYS_listmount, request, room(8), 1, 0);
}

static void folders(void) {
    int fd = open("/etc", O_RDONLY | O_DIRECTORY);
    call(SYS_getdents64, fd, room(1000), 1000);
    call(SYS_getdents64, fd, room(4), 4);
    lseek(fd, 0, SEEK_SET);
    call(SYS_getdents, fd, room(1000), 1000);
    lseek(fd, 0, SEEK_SET);
    call(SYS_getdents64, fd, edge(100), 1000);
}

static void attributes(int fd) {
    call(SYS_setxattr, name, "user.colour", "green", 5, 0);
    call(SYS_setxattr, name, "user.shape", "round", 5, 0);
    call(SYS_getxattr, name, "user.colour", room(50), 50);
    call(SYS_getxattr, name, "user.colour", NULL, 0);
    call(SYS_getxattr, name, "user.colour", room(2), 2);
    call(SYS_lgetxattr, name, "user.colour", room(50), 50);
    call(SYS_fgetxattr, fd, "user.colour", room(50), 50);
    call(SYS_listxattr, name, room(200), 200);
    call(SYS_listxattr, name, NULL, 0);
    call(SYS_llistxattr, name, room(200), 200);
    call(SYS_flistxattr, fd, room(200), 200);
    struct { uint64_t value; uint32_t size, flags; } *value = room(16);
    *value = (typeof(*value)){(uintptr_t)room(50), 50, 0};
    call(SYS_getxattrat, AT_FDCWD, name, 0, "user.colour", value, 16);
    call(SYS_listxattrat, AT_FDCWD, name, 0, room(200), 200);
}

static void commands(int fd) {
    struct flock *lock = room(sizeof *lock);
    *lock = (struct flock){.l_type = F_WRLCK, .l_len = 10};
    call(SYS_fcntl, fd, F_GETLK, lock);
    lock->l_pid = 0;
    call(SYS_fcntl, fd, F_OFD_GETLK, lock);
    call(SYS_fcntl, fd, F_GETLK, edge(8));
    call(SYS_fcntl, fd, 16 /* F_GETOWN_EX */, room(8));
    call(SYS_fcntl, fd, 17 /* F_GETOWNER_UIDS */, room(8));
    call(SYS_fcntl, fd, 1035 /* F_GET_RW_HINT */, room(8));
    call(SYS_fcntl, fd, 1037 /* F_GET_FILE_RW_HINT */, room(8));
    uint32_t *delegation = room(8);
    delegation[0] = delegation[1] = 0;
    call(SYS_fcntl, fd, 1039 /* F_GETDELEG */, delegation);
    call(SYS_fcntl, fd, F_GETFL);
    call(SYS_fcntl, fd, 9999);
}

static void requests(int fd, int other) {
    call(SYS_ioctl, fd, FIBMAP, number(0));
    call(SYS_ioctl, fd, FIGETBSZ, room(4));
    call(SYS_ioctl, fd, FS_IOC_GETFLAGS, room(8));
    call(SYS_ioctl, fd, FS_IOC_GETVERSION, room(8));
    call(SYS_ioctl, fd, FS_IOC_FSGETXATTR, room(28));
    call(SYS_ioctl, fd, FS_IOC_GETFSLABEL, room(256));
    call(SYS_ioctl, fd, FIONREAD, room(4));
    call(SYS_ioctl, fd, 0x5460 /* FIOQSIZE */, room(8));
    fsync(fd);
    struct fiemap *map = room(sizeof *map + 4 * sizeof(struct fiemap_extent));
    *map = (struct fiemap){.fm_length = ~0ull, .fm_extent_count = 4};
    call(SYS_ioctl, fd, FS_IOC_FIEMAP, map);
    *map = (struct fiemap){.fm_length = ~0ull, .fm_flags = 0x8000};
    call(SYS_ioctl, fd, FS_IOC_FIEMAP, map);
    struct file_dedupe_range *same = room(sizeof *same + sizeof same->info[0]);
    memset(same, 0, sizeof *same + sizeof same->info[0]);
    same->src_length = 4096;
    same->dest_count = 1;
    same->info[0].dest_fd = other;
    call(SYS_ioctl, fd, FIDEDUPERANGE, same);
    // Encryption and verity, where the file system has them.
    call(SYS_ioctl, fd, 0x400c6615, room(12));
    call(SYS_ioctl, fd, 0x40106614, room(16));
    uint64_t *policy = room(40);
    *policy = 24;
    call(SYS_ioctl, fd, 0xc0096616, policy);
    uint16_t *digest = room(80);
    digest[1] = 64;
    call(SYS_ioctl, fd, 0xc0046686, digest);
}

int main(int count, char **words) {
    const char *folder = count > 1 ? words[1] : "/tmp";
    snprintf(name, sizeof name, "%s/whydunit-syscalls-XXXXXX", folder);
    snprintf(other_name, sizeof other_name, "%s/whydunit-syscalls-XXXXXX", folder);
    int fd = mkstemp(name), other = mkstemp(other_name);
    for (int i = 0; i < 200; i++) write(fd, "what was it that wrote here?\n", 29);
    lseek(fd, 0, SEEK_SET);
    reading(fd);
    moving(fd, other);
    state(fd);
    mounts();
    folders();
    attributes(fd);
    commands(fd);
    requests(fd, other);
    unlink(name);
    unlink(other_name);
    return 0;
}
