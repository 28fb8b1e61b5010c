// build: -O1 -Wall -Wno-unused-result
// Sockets: addresses, messages with all they carry, options, network interfaces.
#include "call.h"
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct msghdr *message(size_t size, size_t control) {
    struct msghdr *header = room(sizeof *header);
    memset(header, 0, sizeof *header);
    struct iovec *pieces = room(sizeof *pieces * 2);
    pieces[0] = (struct iovec){room(4), 4};
    pieces[1] = (struct iovec){room(size), size};
    header->msg_iov = pieces;
    header->msg_iovlen = 2;
    header->msg_name = room(128);
    header->msg_namelen = 128;
    header->msg_control = room(control);
    header->msg_controllen = control;
    return header;
}

static void pass_descriptor(int fd) {
    char text[] = "with a descriptor";
    struct iovec piece = {text, sizeof text};
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control,
                            .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&header);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    int passed = 1;
    memcpy(CMSG_DATA(head), &passed, sizeof passed);
    sendmsg(fd, &header, 0);
}

static void local(void) {
    int *pair = room(8);
    call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair);
    int *other = room(8);
    call(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, other);
    call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 99, room(8));
    int one = 1;
    setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
    pass_descriptor(pair[0]);
    call(SYS_recvmsg, pair[1], message(50, 200), 0);
    pass_descriptor(pair[0]);
    call(SYS_recvmsg, pair[1], message(50, 20), 0);
    pass_descriptor(pair[0]);
    struct msghdr *cut = message(50, 200);
    cut->msg_control = edge(20);
    call(SYS_recvmsg, pair[1], cut, 0);
    call(SYS_recvmsg, pair[1], message(50, 200), MSG_DONTWAIT);
    write(other[0], "0123456789", 10);
    call(SYS_recvmsg, other[1], message(2, 0), MSG_TRUNC);
    write(other[0], "0123456789", 10);
    call(SYS_recvfrom, other[1], room(4), 4, MSG_TRUNC | MSG_PEEK, NULL, NULL);
    call(SYS_recvfrom, other[1], room(20), 20, 0, room(128), number(128));
    write(other[0], "0123456789", 10);
    call(SYS_recvfrom, other[1], edge(5), 20, 0, NULL, NULL);
    call(SYS_recvfrom, other[1], room(20), 20, MSG_DONTWAIT, NULL, NULL);
    call(SYS_getsockopt, pair[0], SOL_SOCKET, SO_PEERCRED, room(20), number(20));
    call(SYS_getsockopt, pair[0], SOL_SOCKET, 59 /* SO_PEERGROUPS */, room(4), number(0));
    call(SYS_getsockopt, pair[0], SOL_SOCKET, 59, room(400), number(400));
    call(SYS_getsockopt, pair[0], SOL_SOCKET, SO_PEERSEC, room(100), number(100));
    call(SYS_getsockopt, pair[0], SOL_SOCKET, 77 /* SO_PEERPIDFD */, room(4), number(4));
    call(SYS_ioctl, pair[0], SIOCOUTQ, room(4));
    call(SYS_ioctl, pair[0], FIONREAD, room(4));
}

static void options(int fd) {
    static const int socket_options[] = {SO_DEBUG, SO_TYPE, SO_ERROR, SO_SNDBUF, SO_RCVBUF, SO_LINGER,
        SO_RCVTIMEO, SO_PROTOCOL, SO_DOMAIN, SO_COOKIE, SO_MEMINFO, SO_BINDTODEVICE, SO_INCOMING_CPU};
    for (size_t i = 0; i < sizeof socket_options / sizeof socket_options[0]; i++) {
        call(SYS_getsockopt, fd, SOL_SOCKET, socket_options[i], room(64), number(64));
        call(SYS_getsockopt, fd, SOL_SOCKET, socket_options[i], room(2), number(2));
    }
    for (int option = 1; option < 45; option++) {
        if (option == 35) continue; // maps pages
        call(SYS_getsockopt, fd, IPPROTO_TCP, option, room(300), number(300));
    }
    for (int option = 1; option < 60; option++)
        call(SYS_getsockopt, fd, IPPROTO_IP, option, room(300), number(300));
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0xffff), BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sock_fprog program = {2, code};
    call(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    call(SYS_getsockopt, fd, SOL_SOCKET, SO_GET_FILTER, NULL, number(0));
    call(SYS_getsockopt, fd, SOL_SOCKET, SO_GET_FILTER, room(64), number(8));
    call(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, edge(2), number(4));
    call(SYS_getsockopt, -1, SOL_SOCKET, SO_TYPE, room(4), number(4));
    call(SYS_getsockopt, fd, 9999, 1, room(4), number(4));
}

static void stream(int family) {
    int server = socket(family, SOCK_STREAM, 0);
    listen(server, 5);
    struct sockaddr_storage *address = room(sizeof *address);
    call(SYS_getsockname, server, address, number(sizeof *address));
    for (int turn = 0; turn < 3; turn++) {
        int client = socket(family, SOCK_STREAM, 0);
        connect(client, (struct sockaddr *)address, sizeof *address);
        int accepted = turn == 0 ? call(SYS_accept, server, room(128), number(128))
                     : turn == 1 ? call(SYS_accept4, server, room(8), number(8), SOCK_CLOEXEC)
                                 : call(SYS_accept4, server, NULL, NULL, 0);
        call(SYS_getpeername, accepted, room(128), number(128));
        call(SYS_getpeername, accepted, room(4), number(4));
        call(SYS_getsockname, accepted, edge(8), number(128));
        send(client, "hello", 5, 0);
        call(SYS_read, accepted, room(20), 20);
        send(client, "!", 1, MSG_OOB);
        call(SYS_ioctl, accepted, SIOCATMARK, room(4));
        call(SYS_ioctl, accepted, SIOCOUTQNSD, room(4));
        call(SYS_recvfrom, accepted, room(4), 4, MSG_OOB, room(64), number(64));
        if (turn == 0) options(accepted);
        close(client);
        close(accepted);
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    call(SYS_accept, server, room(128), number(128));
    close(server);
}

static void datagrams(int family) {
    int fd = socket(family, SOCK_DGRAM, 0), from = socket(family, SOCK_DGRAM, 0);
    struct sockaddr_storage address = {.ss_family = family};
    socklen_t length = sizeof address;
    if (family == AF_INET6) ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    else ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd, (struct sockaddr *)&address, family == AF_INET6 ? 28 : 16);
    getsockname(fd, (struct sockaddr *)&address, &length);
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
    setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &one, sizeof one);
    connect(from, (struct sockaddr *)&address, length);
    struct mmsghdr *both = room(sizeof *both * 2);
    memset(both, 0, sizeof *both * 2);
    struct iovec piece = {"datagram", 8};
    for (int i = 0; i < 2; i++) {
        both[i].msg_hdr.msg_iov = &piece;
        both[i].msg_hdr.msg_iovlen = 1;
        both[i].msg_len = 0xa5a5a5a5;
    }
    call(SYS_sendmmsg, from, both, 2, 0);
    call(SYS_sendmmsg, from, both, 2, 0);
    call(SYS_sendmmsg, -1, both, 2, 0);
    struct mmsghdr *two = room(sizeof *two * 3);
    for (int i = 0; i < 3; i++) {
        two[i].msg_hdr = *message(30, 300);
        two[i].msg_len = 0xa5a5a5a5;
    }
    int64_t *time = room(16);
    time[0] = 5, time[1] = 0;
    call(SYS_recvmmsg, fd, two, 2, 0, time);
    call(SYS_recvmsg, fd, message(30, 300), 0);
    call(SYS_recvmmsg, fd, two + 2, 1, MSG_DONTWAIT, NULL);
    call(SYS_recvmmsg, fd, two + 2, 1, MSG_DONTWAIT, NULL);
    int zero = 0;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &zero, sizeof zero);
    for (int turn = 0; turn < 2; turn++) { // the first time it only starts to keep times
        call(SYS_ioctl, fd, SIOCGSTAMP_OLD, room(16));
        call(SYS_ioctl, fd, SIOCGSTAMPNS_OLD, room(16));
        call(SYS_ioctl, fd, 0x80108906, room(16));
        call(SYS_ioctl, fd, 0x80108907, room(16));
        send(from, "x", 1, 0);
        call(SYS_recvfrom, fd, room(4), 4, 0, room(64), number(64));
    }
    call(SYS_ioctl, fd, SIOCGPGRP, room(4));
    call(SYS_ioctl, fd, FIOGETOWN, room(4));
    for (int option = 1; option < 80; option++)
        call(SYS_getsockopt, fd, IPPROTO_IPV6, option, room(300), number(300));
}

static void interfaces(void) {
    static const unsigned requests[] = {SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFDSTADDR, SIOCGIFBRDADDR,
        SIOCGIFNETMASK, SIOCGIFMETRIC, SIOCGIFMEM, SIOCGIFMTU, SIOCGIFHWADDR, SIOCGIFSLAVE, SIOCGIFINDEX,
        SIOCGIFPFLAGS, SIOCGIFTXQLEN, SIOCGMIIPHY, SIOCGMIIREG, SIOCGIFMAP, SIOCGIFNAME, 0x8b01, 0x894c};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct if_nameindex *all = if_nameindex();
    for (struct if_nameindex *it = all; it && it->if_index; it++)
        for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
            struct ifreq *interface = room(sizeof *interface);
            strncpy(interface->ifr_name, it->if_name, IFNAMSIZ);
            if (requests[i] == SIOCGIFNAME) interface->ifr_ifindex = it->if_index;
            call(SYS_ioctl, fd, requests[i], interface);
        }
    struct ifconf *list = room(sizeof *list);
    *list = (struct ifconf){.ifc_len = 400, .ifc_buf = room(400)};
    call(SYS_ioctl, fd, SIOCGIFCONF, list);
    *list = (struct ifconf){.ifc_len = 0, .ifc_buf = NULL};
    call(SYS_ioctl, fd, SIOCGIFCONF, list);
    struct arpreq *neighbour = room(sizeof *neighbour);
    memset(neighbour, 0, sizeof *neighbour);
    struct sockaddr_in *to = (struct sockaddr_in *)&neighbour->arp_pa;
    to->sin_family = AF_INET;
    to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (struct if_nameindex *it = all; it && it->if_index; it++) {
        strncpy(neighbour->arp_dev, it->if_name, sizeof neighbour->arp_dev - 1);
        // A gateway is most likely to be known.
        FILE *table = fopen("/proc/net/arp", "r");
        char line[200], text[64];
        while (table && fgets(line, sizeof line, table)) {
            unsigned a, b, c, d;
            if (sscanf(line, "%u.%u.%u.%u %63s", &a, &b, &c, &d, text) == 5)
                to->sin_addr.s_addr = htonl(a << 24 | b << 16 | c << 8 | d);
        }
        if (table) fclose(table);
        call(SYS_ioctl, fd, SIOCGARP, neighbour);
    }
    int route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    bind(route, (struct sockaddr *)&address, sizeof address);
    for (int option = 1; option < 13; option++) {
        call(SYS_getsockopt, route, SOL_NETLINK, option, room(64), number(64));
        call(SYS_getsockopt, route, SOL_NETLINK, option, room(4), number(4));
    }
    int packet = socket(AF_PACKET, SOCK_DGRAM, 0);
    for (int option = 1; option < 25; option++)
        call(SYS_getsockopt, packet, SOL_PACKET, option, room(64), number(64));
}

int main(void) {
    local();
    stream(AF_INET);
    stream(AF_INET6);
    datagrams(AF_INET);
    datagrams(AF_INET6);
    interfaces();
    return 0;
}
