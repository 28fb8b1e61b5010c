// build: -O1 -Wall -Wno-unused-result
// Disks, by a loop device over a file of its own, and the file system on it if the argument names
// where it is mounted. Needs root.
#include "call.h"
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <linux/loop.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static void disk(int fd) {
    static const unsigned ints[] = {BLKROGET, BLKSSZGET, BLKIOMIN, BLKIOOPT, BLKALIGNOFF, BLKPBSZGET,
        BLKDISCARDZEROES};
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) call(SYS_ioctl, fd, ints[i], room(4));
    call(SYS_ioctl, fd, BLKGETSIZE, room(8));
    call(SYS_ioctl, fd, BLKRAGET, room(8));
    call(SYS_ioctl, fd, BLKFRAGET, room(8));
    call(SYS_ioctl, fd, BLKSECTGET, room(2));
    call(SYS_ioctl, fd, BLKROTATIONAL, room(2));
    call(SYS_ioctl, fd, BLKBSZGET, room(8));
    call(SYS_ioctl, fd, BLKGETSIZE64, room(8));
    call(SYS_ioctl, fd, 0x80081280 /* BLKGETDISKSEQ */, room(8));
    call(SYS_ioctl, fd, HDIO_GETGEO, room(16));
    call(SYS_ioctl, fd, HDIO_GET_IDENTITY, room(512));
    call(SYS_ioctl, fd, 0x2282 /* SG_GET_VERSION_NUM */, room(4));
}

static void quotas(const char *folder) {
    struct stat state;
    stat(folder, &state);
    char device[60];
    snprintf(device, sizeof device, "/dev/block/%u:%u", major(state.st_dev), minor(state.st_dev));
    char link[200] = "";
    snprintf(device, sizeof device, "/sys/dev/block/%u:%u", major(state.st_dev), minor(state.st_dev));
    readlink(device, link, sizeof link - 1);
    char *name = strrchr(link, '/');
    snprintf(device, sizeof device, "/dev%s", name ? name : "/null");
    int fd = open(folder, O_RDONLY);
    static const int commands[] = {Q_GETFMT, Q_GETINFO, Q_GETQUOTA, Q_GETNEXTQUOTA, Q_SYNC, 0x5803, 0x5805,
        0x5808, 0x5809};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        unsigned char *answer = room(200);
        if (commands[i] == 0x5808) answer[0] = 1; // the version asked for
        call(SYS_quotactl, QCMD(commands[i], USRQUOTA), device, 0, answer);
        call(SYS_quotactl_fd, fd, QCMD(commands[i], USRQUOTA), 0, room(200));
    }
}

static void system_of(const char *folder) {
    int fd = open(folder, O_RDONLY);
    struct fstrim_range *range = room(sizeof *range);
    *range = (struct fstrim_range){0, ~0ull, 0};
    call(SYS_ioctl, fd, FITRIM, range);
    call(SYS_ioctl, fd, FS_IOC_GETFSLABEL, room(256));
    // What only btrfs has.
    call(SYS_ioctl, fd, 0x8400941f /* BTRFS_IOC_FS_INFO */, room(1024));
    uint64_t *asked = room(4096);
    memset(asked, 0, 4096);
    asked[0] = 1;
    call(SYS_ioctl, fd, 0xd000941e /* BTRFS_IOC_DEV_INFO */, asked);
    asked = room(4096);
    memset(asked, 0, 4096);
    asked[1] = 256;
    call(SYS_ioctl, fd, 0xd0009412 /* BTRFS_IOC_INO_LOOKUP */, asked);
    asked = room(4096);
    uint64_t key[13] = {1, 0, ~0ull, 0, ~0ull, 0, ~0ull, 0xffull << 32, 100};
    memcpy(asked, key, sizeof key);
    call(SYS_ioctl, fd, 0xd0009411 /* BTRFS_IOC_TREE_SEARCH */, asked);
    close(fd);
    // Encryption of a new folder, where the file system has it.
    char path[300];
    snprintf(path, sizeof path, "%s/encrypted", folder);
    mkdir(path, 0700);
    fd = open(path, O_RDONLY);
    unsigned char policy[12] = {0, 1, 4, 0, 'w', 'h', 'y', 'd', 'u', 'n', 'i', 't'};
    call(SYS_ioctl, fd, 0x800c6613 /* FS_IOC_SET_ENCRYPTION_POLICY */, policy);
    call(SYS_ioctl, fd, 0x400c6615 /* FS_IOC_GET_ENCRYPTION_POLICY */, room(12));
    call(SYS_ioctl, fd, 0x40106614 /* FS_IOC_GET_ENCRYPTION_PWSALT */, room(16));
    uint64_t *extended = room(40);
    *extended = 24;
    call(SYS_ioctl, fd, 0xc0096616 /* FS_IOC_GET_ENCRYPTION_POLICY_EX */, extended);
    // A file sealed with a tree of hashes.
    snprintf(path, sizeof path, "%s/verity", folder);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    write(fd, path, sizeof path);
    close(fd);
    fd = open(path, O_RDONLY);
    uint32_t how[32] = {1, 1, 4096};
    call(SYS_ioctl, fd, 0x40806685 /* FS_IOC_ENABLE_VERITY */, how);
    uint16_t *digest = room(80);
    digest[1] = 64;
    call(SYS_ioctl, fd, 0xc0046686 /* FS_IOC_MEASURE_VERITY */, digest);
}

int main(int count, char **words) {
    if (count > 1) {
        quotas(words[1]);
        system_of(words[1]);
        return 0;
    }
    char name[] = "/tmp/whydunit-disk-XXXXXX";
    int file = mkstemp(name);
    ftruncate(file, 1 << 20);
    int control = open("/dev/loop-control", O_RDWR);
    int free_one = ioctl(control, LOOP_CTL_GET_FREE);
    char device[40];
    snprintf(device, sizeof device, "/dev/loop%d", free_one);
    int fd = open(device, O_RDWR);
    if (call(SYS_ioctl, fd, LOOP_SET_FD, file) == 0) {
        call(SYS_ioctl, fd, LOOP_GET_STATUS, room(168));
        call(SYS_ioctl, fd, LOOP_GET_STATUS64, room(232));
        disk(fd);
        call(SYS_ioctl, fd, LOOP_CLR_FD, 0);
    }
    disk(open("/dev/vda", O_RDONLY));
    disk(open("/dev/sda", O_RDONLY));
    unlink(name);
    return 0;
}
