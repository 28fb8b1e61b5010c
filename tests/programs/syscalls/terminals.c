// build: -O1 -Wall -Wno-unused-result
// Terminals: a pseudo terminal, and the console and a serial line where there are such and they may
// be opened; a tunnel.
#include "call.h"
#include <asm/termbits.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/kd.h>
#include <linux/nsfs.h>
#include <linux/serial.h>
#include <linux/vt.h>
#include <sys/ioctl.h>

static void line(int fd) {
    call(SYS_ioctl, fd, TCGETS, room(36));
    call(SYS_ioctl, fd, TCGETS2, room(44));
    call(SYS_ioctl, fd, 0x5405 /* TCGETA */, room(18));
    call(SYS_ioctl, fd, TIOCGWINSZ, room(8));
    call(SYS_ioctl, fd, TIOCGPGRP, room(4));
    call(SYS_ioctl, fd, TIOCGSID, room(4));
    call(SYS_ioctl, fd, TIOCOUTQ, room(4));
    call(SYS_ioctl, fd, FIONREAD, room(4));
    call(SYS_ioctl, fd, TIOCGETD, room(4));
    call(SYS_ioctl, fd, 0x5419 /* TIOCGSOFTCAR */, room(4));
    call(SYS_ioctl, fd, 0x5456 /* TIOCGLCKTRMIOS */, room(36));
    call(SYS_ioctl, fd, TIOCGEXCL, room(4));
    call(SYS_ioctl, fd, TIOCMGET, room(4));
    call(SYS_ioctl, fd, TIOCGSERIAL, room(72));
    call(SYS_ioctl, fd, 0x5459 /* TIOCSERGETLSR */, room(4));
    call(SYS_ioctl, fd, TIOCGICOUNT, room(80));
    call(SYS_ioctl, fd, TIOCGRS485, room(32));
    call(SYS_ioctl, fd, TIOCGDEV, room(4));
    call(SYS_ioctl, fd, 0x80285442 /* TIOCGISO7816 */, room(40));
    call(SYS_ioctl, fd, TCGETS, edge(20));
}

static void console(int fd) {
    call(SYS_ioctl, fd, KDGETLED, room(1));
    call(SYS_ioctl, fd, KDGKBTYPE, room(1));
    call(SYS_ioctl, fd, KDGETMODE, room(4));
    call(SYS_ioctl, fd, KDGKBMODE, room(4));
    call(SYS_ioctl, fd, KDGKBMETA, room(4));
    call(SYS_ioctl, fd, KDGKBLED, room(1));
    struct kbentry *key = room(sizeof *key);
    *key = (struct kbentry){0, 30, 0x7a7a};
    call(SYS_ioctl, fd, KDGKBENT, key);
    call(SYS_ioctl, fd, VT_OPENQRY, room(4));
    call(SYS_ioctl, fd, VT_GETMODE, room(8));
    call(SYS_ioctl, fd, VT_GETSTATE, room(6));
}

static void pseudo(void) {
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    int unlocked = 0;
    ioctl(master, TIOCSPTLCK, &unlocked);
    unsigned *number = room(4);
    call(SYS_ioctl, master, TIOCGPTN, number);
    call(SYS_ioctl, master, TIOCGPTLCK, room(4));
    call(SYS_ioctl, master, TIOCGPKT, room(4));
    char name[40];
    snprintf(name, sizeof name, "/dev/pts/%u", *number);
    setsid();
    int slave = open(name, O_RDWR);
    line(slave);
    line(master);
    // Not on a real line, which it would change.
    call(SYS_ioctl, slave, TIOCSRS485, room(32));
    call(SYS_ioctl, slave, 0xc0285443 /* TIOCSISO7816 */, room(40));
    write(master, "typed\n", 6);
    call(SYS_read, slave, room(40), 40);
    call(SYS_read, master, room(40), 40);
    write(master, "typed again\n", 12);
    call(SYS_read, slave, edge(3), 40);
}

static void tunnel(void) {
    int fd = open("/dev/net/tun", O_RDWR);
    call(SYS_ioctl, fd, TUNGETFEATURES, room(4));
    struct ifreq *interface = room(sizeof *interface);
    memset(interface, 0, sizeof *interface);
    strcpy(interface->ifr_name, "whydunit%d");
    interface->ifr_flags = IFF_TUN | IFF_NO_PI;
    call(SYS_ioctl, fd, TUNSETIFF, interface);
    call(SYS_ioctl, fd, TUNGETIFF, room(40));
}

int main(void) {
    pseudo();
    int fd = open("/dev/tty1", O_RDWR | O_NOCTTY | O_NONBLOCK);
    line(fd);
    console(fd);
    fd = open("/dev/ttyS0", O_RDWR | O_NOCTTY | O_NONBLOCK);
    line(fd);
    tunnel();
    fd = open("/proc/self/ns/user", O_RDONLY);
    call(SYS_ioctl, fd, NS_GET_OWNER_UID, room(4));
    call(SYS_ioctl, open("/proc/self/ns/mnt", O_RDONLY), 0x8008b705 /* NS_GET_MNTNS_ID */, room(8));
    return 0;
}
