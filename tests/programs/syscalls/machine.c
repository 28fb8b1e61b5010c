// build: -O1 -Wall -Wno-unused-result
// The machine: names, randomness, its log, keys, security modules; and the placement of memory. The
// log is not read in the ways that would take its lines from others.
#include "call.h"
#include <linux/keyctl.h>

static void keys(void) {
    long key = call(SYS_add_key, "user", "whydunit", "secret", 6, KEY_SPEC_PROCESS_KEYRING);
    call(SYS_keyctl, KEYCTL_DESCRIBE, key, room(100), 100);
    call(SYS_keyctl, KEYCTL_DESCRIBE, key, room(100), 3);
    call(SYS_keyctl, KEYCTL_DESCRIBE, key, NULL, 0);
    call(SYS_keyctl, KEYCTL_READ, key, room(100), 100);
    call(SYS_keyctl, KEYCTL_READ, key, room(100), 2);
    call(SYS_keyctl, KEYCTL_GET_SECURITY, key, room(100), 100);
    call(SYS_keyctl, 31 /* KEYCTL_CAPABILITIES */, room(20), 20);
    call(SYS_keyctl, 31, room(20), 1);
    call(SYS_keyctl, KEYCTL_DESCRIBE, 1, room(100), 100);
    // Diffie and Hellman, with small numbers.
    static const char *numbers[] = {"\x05", "\x17", "\x03"};
    int32_t ids[3];
    for (int i = 0; i < 3; i++) {
        char name[] = "whydunit-0";
        name[9] += i;
        ids[i] = call(SYS_add_key, "user", name, numbers[i], 1, KEY_SPEC_PROCESS_KEYRING);
    }
    struct { int32_t private, prime, base; } *dh = room(12);
    *dh = (typeof(*dh)){ids[0], ids[1], ids[2]};
    call(SYS_keyctl, 23 /* KEYCTL_DH_COMPUTE */, dh, NULL, 0, NULL);
    call(SYS_keyctl, 23, dh, room(64), 64, NULL);
    call(SYS_keyctl, 24 /* KEYCTL_PKEY_QUERY */, key, 0, "", room(56));
    int32_t *operation = room(40);
    memset(operation, 0, 40);
    operation[0] = key;
    for (int request = 25; request < 28; request++) // encrypt, decrypt, sign
        call(SYS_keyctl, request, operation, "", "text", room(64));
}

static void security(void) {
    unsigned *size = number(4096);
    call(SYS_lsm_list_modules, room(4096), size, 0);
    call(SYS_lsm_list_modules, room(4), number(1), 0);
    for (int attribute = 100; attribute < 106; attribute++) {
        call(SYS_lsm_get_self_attr, attribute, room(4096), number(4096), 0);
        call(SYS_lsm_get_self_attr, attribute, room(4), number(4), 0);
    }
}

static void memory(void) {
    char *pages = mmap(NULL, 40960, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages[0] = pages[8192] = 1;
    call(SYS_mincore, pages, 40960, room(10));
    call(SYS_mincore, pages, 40000, room(10));
    call(SYS_mincore, (void *)4096, 4096, room(10));
    call(SYS_get_mempolicy, room(4), room(128), 1024, NULL, 0);
    call(SYS_get_mempolicy, room(4), room(128), 100, NULL, 0);
    call(SYS_get_mempolicy, room(4), NULL, 0, pages, 2 /* MPOL_F_ADDR */);
    void **which = room(24);
    which[0] = pages, which[1] = pages + 4096, which[2] = pages + 8192;
    call(SYS_move_pages, 0, 3, which, NULL, room(12), 0);
    call(SYS_move_pages, 0, 3, which, NULL, edge(6), 0);
}

int main(void) {
    call(SYS_uname, room(390));
    call(SYS_uname, edge(100));
    call(SYS_sysinfo, room(112));
    call(SYS_getrandom, room(100), 100, 0);
    call(SYS_getrandom, edge(50), 100, 0);
    call(SYS_syslog, 3, room(200), 200);
    call(SYS_syslog, 10, NULL, 0);
    call(SYS_syslog, 3, room(200), -1);
    keys();
    security();
    memory();
    return 0;
}
