"""The programs of the matrix: a storage, a way to access it, and faults chosen by an argument.

One program has one buffer in one kind of storage and accesses it in one way, in the function `act`.
Its argument says which fault it makes; `=` is none. So a fixed twin is the same program, and what the
compiler made of it is the same, too.
"""

import dataclasses

# What an argument stands for. The words are those of the table.
FAULTS = {
    "1": "1 byte past",
    "8": "8 bytes past",
    "6": "64 bytes past",
    "n": "in a neighbour",
    "b": "before the start",
    "f": "freed",
    "r": "freed and reused",
    "s": "out of scope",
    "u": "unwritten",
}
GOOD = "="
STORAGES = {
    "heap": "186nbfru",
    "stack": "186nbfsu",
    "alloca": "186nbfu",
    "static": "186nb",
    "thread-local": "186nb",
    "mapped": "186nbf",
}


@dataclasses.dataclass(frozen=True)
class Way:
    """How a buffer is accessed: `p` and `n` are its bytes. `shape` says what decides how many there are:
    `range` is `n`, `string` is what stands there, a number is always as many."""

    name: str
    group: str
    shape: object
    code: str
    writes: bool = False
    wide: bool = False

    def faults(self, storage):
        chosen = STORAGES[storage]
        if self.writes:
            chosen = chosen.replace("u", "")
        if self.shape == "string":
            chosen = chosen.replace("8", "").replace("6", "")
        return chosen

    @property
    def least(self):
        """The smallest buffer that it fits in."""
        return self.shape if isinstance(self.shape, int) else 16


def reads(group, shape, **codes):
    return [Way(name, group, shape, code) for name, code in codes.items()]


def writes(group, shape, **codes):
    return [Way(name, group, shape, code, writes=True) for name, code in codes.items()]


def wide(ways):
    return [dataclasses.replace(way, wide=True) for way in ways]


MATTERS = "if (scratch[3] == 7) sink++;"

WAYS = [
    # The program's own code.
    *reads("direct", "range",
           read_byte="if (p[n - 1] == 7) sink++;",
           read_loop="long sum = 0; for (long i = 0; i < n; i++) sum += p[i]; if (sum == 77) sink++;"),
    *reads("direct", 8, read_word="if (*(long *)p == 7) sink++;"),
    *reads("direct", 4, read_int="if (*(int *)p == 7) sink++;"),
    *writes("direct", "range",
            write_byte="p[n - 1] = 7;",
            write_loop="for (long i = 0; i < n; i++) p[i] = (char)(i * 3);"),
    *writes("direct", 8, write_word="*(volatile long *)p = 7;"),
    # What the C library reads.
    *reads("library", "range",
           memcpy_from="memcpy(scratch, p, n); " + MATTERS,
           memmove_from="memmove(scratch, p, n); " + MATTERS,
           mempcpy_from="mempcpy(scratch, p, n); " + MATTERS,
           memccpy_from="memccpy(scratch, p, 'z', n); " + MATTERS,
           memcmp="if (memcmp(p, letters, n) > 3) sink++;",
           memchr="if (memchr(p, 'z', n)) sink++;",
           memrchr="if (memrchr(p, 'z', n)) sink++;",
           memmem="if (memmem(p, n, \"zz\", 2)) sink++;",
           strnlen="if (strnlen(p, n) == 7) sink++;",
           strncpy_from="strncpy(scratch, p, n); " + MATTERS,
           strncat_from="strncat(empty(), p, n); " + MATTERS,
           strncmp="if (strncmp(p, letters, n) > 3) sink++;",
           strndup="char *copy = strndup(p, n); if (copy[3] == 7) sink++; free(copy);",
           fwrite="fwrite(p, 1, n, out); fflush(out);",
           printf_precision="fprintf(out, \"%.*s\\n\", (int)n, p);",
           qsort="qsort(p, n, 1, by_byte);",
           bsearch="if (bsearch(\"z\", p, n, 1, by_byte)) sink++;"),
    *reads("library", "string",
           strlen="if (strlen(p) == 7) sink++;",
           strcpy_from="strcpy(scratch, p); " + MATTERS,
           stpcpy_from="stpcpy(scratch, p); " + MATTERS,
           strcat_from="strcat(empty(), p); " + MATTERS,
           strcmp="if (strcmp(p, letters) > 3) sink++;",
           strcasecmp="if (strcasecmp(p, letters) > 3) sink++;",
           strcoll="if (strcoll(p, letters) > 3) sink++;",
           strchr="if (strchr(p, 'z')) sink++;",
           strrchr="if (strrchr(p, 'z')) sink++;",
           strchrnul="if (*strchrnul(p, 'z') == 7) sink++;",
           strstr="if (strstr(p, \"zz\")) sink++;",
           strspn="if (strspn(p, \"A\") == 7) sink++;",
           strcspn="if (strcspn(p, \"z\") == 7) sink++;",
           strpbrk="if (strpbrk(p, \"yz\")) sink++;",
           strdup="char *copy = strdup(p); if (copy[3] == 7) sink++; free(copy);",
           fputs="fputs(p, out); fflush(out);",
           printf="fprintf(out, \"%s and more\\n\", p); fflush(out);",
           snprintf_from="snprintf(scratch, sizeof scratch, \"%s!\", p); " + MATTERS,
           sprintf_from="sprintf(scratch, \"%s!\", p); " + MATTERS),
    *wide(reads("library", "string",
                wcslen="if (wcslen((wchar_t *)p) == 7) sink++;",
                wcscpy_from="wcscpy((wchar_t *)scratch, (wchar_t *)p); " + MATTERS,
                wcschr="if (wcschr((wchar_t *)p, L'z')) sink++;",
                wcscmp="if (wcscmp((wchar_t *)p, wide_word()) > 3) sink++;")),
    *wide(reads("library", "range",
                wmemcpy_from="wmemcpy((wchar_t *)scratch, (wchar_t *)p, (n + 3) / 4); " + MATTERS)),
    # What the C library writes.
    *writes("library", "range",
            memcpy_to="memcpy(p, letters, n);",
            memmove_to="memmove(p, letters, n);",
            memset="memset(p, 'B', n);",
            strcpy_to="strcpy(p, word(n));",
            stpcpy_to="stpcpy(p, word(n));",
            strncpy_to="strncpy(p, letters, n);",
            strcat_to="p[0] = 0; strcat(p, word(n));",
            strncat_to="p[0] = 0; strncat(p, letters, n - 1);",
            sprintf_to="sprintf(p, \"%s%c\", word(n - 1), 'x');",
            snprintf_to="snprintf(p, n, \"%s\", letters);",
            sscanf_to="sscanf(word(n), \"%s\", p);",
            fread="if (fread(p, 1, n, zeros) != (size_t)n) sink++;",
            fgets="FILE *f = fmemopen(letters, 8000, \"r\"); if (!fgets(p, n, f)) sink++; fclose(f);",
            strxfrm="strxfrm(p, letters, n);",
            swab="swab(letters, p, n & ~1L); p[n - 1] = 0;"),
    *wide(writes("library", "range",
                 wcsncpy_to="wcsncpy((wchar_t *)p, L\"abcdefgh\", (n + 3) / 4);",
                 wmemset="wmemset((wchar_t *)p, L'B', (n + 3) / 4);")),
    # What the kernel reads.
    *reads("system call", "range",
           write="if (write(null, p, n) < 0) sink++;",
           writev="struct iovec v = {p, n}; if (writev(null, &v, 1) < 0) sink++;",
           pwrite="if (pwrite(null, p, n, 0) < 0) sink++;",
           send="if (send(ends[0], p, n, 0) < 0) sink++;",
           sendmsg="struct iovec v = {p, n}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};"
                   " if (sendmsg(ends[0], &m, 0) < 0) sink++;"),
    *reads("system call", "string",
           open="if (open(p, O_RDONLY) >= 0) sink++;",
           access="if (access(p, R_OK) == 0) sink++;"),
    *reads("system call", 4, setsockopt="setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, p, 4);"),
    # What the kernel writes.
    *writes("system call", "range",
            read="if (read(fileno(zeros), p, n) < 0) sink++;",
            readv="struct iovec v = {p, n}; if (readv(fileno(zeros), &v, 1) < 0) sink++;",
            pread="if (pread(fileno(zeros), p, n, 0) < 0) sink++;",
            recv="if (send(ends[0], letters, n, 0) < 0 || recv(ends[1], p, n, 0) < 0) sink++;",
            recvmsg="struct iovec v = {p, n}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};"
                    " if (send(ends[0], letters, n, 0) < 0 || recvmsg(ends[1], &m, 0) < 0) sink++;",
            getrandom="if (getrandom(p, n, 0) < 0) sink++;"),
    *writes("system call", 144, fstat="fstat(null, (struct stat *)p);"),
    *writes("system call", 16, getrlimit="getrlimit(RLIMIT_CORE, (struct rlimit *)p);"),
    *writes("system call", 112, sysinfo="sysinfo((struct sysinfo *)p);"),
    *writes("system call", 8, pipe="if (pipe((int *)p) < 0) sink++;"),
    *writes("system call", 4, ioctl="ioctl(ends[1], FIONREAD, p);"),
]

HEAD = r"""#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

enum { SIZE = @SIZE@ };
static long size = SIZE;
static char fault;
static volatile long sink;
static char letters[16384], scratch[16384];
static FILE *out, *zeros;
static int null, ends[2];

static int by_byte(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
static char *empty(void) { scratch[0] = 0; return scratch; }
static char *word(long n) { static char text[16384]; memset(text, 'C', n); text[n - 1] = 0; return text; }
static wchar_t *wide_word(void) { static wchar_t text[4096]; wmemset(text, L'A', 4095); return text; }

/* A number that was made from no pointer, as an index from outside is. */
static long plain(long n) { char text[32]; sprintf(text, "%ld", n); return atol(text); }

/* Hides from the compiler where a value comes from. */
#define OPAQUE(x) __asm__ volatile("" : "+r"(x) : : "memory")

__attribute__((noinline)) static void act(char *p, long n) {
    @CODE@
    OPAQUE(p);
}

/* Fills a buffer with letters; the last is a terminator unless it is to be missing. */
__attribute__((noinline)) static void prepare(char *p, int ended) {
    @FILL@
}

/* Calls `act` with the bytes that the fault asks for. */
__attribute__((noinline)) static void aim(char *b, long to_neighbour) {
    long past = fault == '1' ? 1 : fault == '8' ? 8 : fault == '6' ? 64 : 0;
    long fixed = @FIXED@, n = fixed ? fixed : size + past;
    char *p = fixed ? b + size - fixed + past : b;
    if (fault == 'b') { p = b - 8; n = 8; }
    if (fault == 'n') { p = b + to_neighbour; n = fixed ? fixed : 16; }
    OPAQUE(p);
    act(p, n);
}
"""

MAIN = r"""
int main(int argc, char **argv) {
    fault = argc > 1 ? argv[1][0] : '=';
    memset(letters, 'A', sizeof letters - 4);
    out = fopen("/dev/null", "w");
    zeros = fopen("/dev/zero", "r");
    null = open("/dev/null", O_RDWR);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    run();
    puts("done");
    return 0;
}
"""

# The `ended` of a string that is one byte too long is that it has no end.
ENDED = "fault != '1'"

RUN = {
    "heap": """
static void run(void) {
    char *b = malloc(size), *neighbour = malloc(size);
    if (fault != 'u') prepare(b, ENDED);
    prepare(neighbour, 1);
    long distance = plain(neighbour - b);
    if (fault == 'f' || fault == 'r') free(b);
    if (fault == 'r') { char *next = malloc(size); prepare(next, 1); OPAQUE(next); }
    OPAQUE(b);
    aim(b, distance);
    OPAQUE(neighbour);
}""",
    "stack": """
static char *held;
__attribute__((noinline)) static void leave(void) {
    char b[SIZE];
    prepare(b, 1);
    char *p = b;
    OPAQUE(p);
    held = p;
}
__attribute__((noinline)) static void scope(void) {
    {
        char b[SIZE];
        prepare(b, 1);
        char *p = b;
        OPAQUE(p);
        held = p;
    }
    aim(held, 0);
}
__attribute__((noinline)) static void both(void) {
    char b[SIZE], neighbour[SIZE];
    if (fault != 'u') prepare(b, ENDED);
    prepare(neighbour, 1);
    char *p = b, *q = neighbour;
    OPAQUE(p);
    OPAQUE(q);
    long distance = plain(q - p);
    aim(p, distance);
    OPAQUE(q);
}
static void run(void) {
    if (fault == 'f') { leave(); aim(held, 0); }
    else if (fault == 's') scope();
    else both();
}""",
    "alloca": """
static char *held;
/* Of a constant size compilers make an array, which has no name. */
__attribute__((noinline)) static void leave(void) {
    long bytes = size;
    OPAQUE(bytes);
    held = alloca(bytes);
    prepare(held, 1);
}
__attribute__((noinline)) static void both(void) {
    long bytes = size;
    OPAQUE(bytes);
    char *b = alloca(bytes), *neighbour = alloca(bytes);
    if (fault != 'u') prepare(b, ENDED);
    prepare(neighbour, 1);
    long distance = plain(neighbour - b);
    OPAQUE(b);
    aim(b, distance);
    OPAQUE(neighbour);
}
static void run(void) {
    if (fault == 'f') { leave(); aim(held, 0); }
    else both();
}""",
    "static": """
static char buffer[SIZE], neighbour[SIZE];
static void run(void) {
    prepare(buffer, ENDED);
    prepare(neighbour, 1);
    char *b = buffer, *q = neighbour;
    OPAQUE(b);
    OPAQUE(q);
    long distance = plain(q - b);
    aim(b, distance);
}""",
    "mapped": """
static char *map(void) {
    char *pages = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages, 4096);
    munmap(pages + 2 * 4096, 4096);
    return pages + 4096;
}
static void run(void) {
    char *b = map(), *neighbour = map();
    prepare(b, ENDED);
    prepare(neighbour, 1);
    long distance = plain(neighbour - b);
    if (fault == 'f') munmap(b, size);
    OPAQUE(b);
    aim(b, distance);
}""",
}
RUN["thread-local"] = RUN["static"].replace("static char buffer", "static __thread char buffer")

FILL = """memset(p, 'A', size);
    if (ended) p[size - 1] = 0;"""
WIDE_FILL = """for (long i = 0; i < size / 4; i++) ((wchar_t *)p)[i] = L'A';
    if (ended) ((wchar_t *)p)[size / 4 - 1] = 0;"""


def sizes(storage, way):
    """The buffers that a program may have."""
    if storage == "mapped":
        return [4096]
    chosen = [24, 40, 64, 100, 200] if way.wide else [16, 24, 33, 40, 50, 64, 100, 200]
    return [size for size in chosen if size >= way.least]


def source(storage, way, size):
    """The text of a program."""
    fixed = way.shape if isinstance(way.shape, int) else 0
    # Where `n` decides how much is read, a terminator before would decide instead.
    ended = ENDED if way.shape == "string" else "0" if way.shape == "range" and not way.writes else "1"
    text = HEAD.replace("@SIZE@", str(size)).replace("@CODE@", way.code).replace("@FIXED@", str(fixed))
    text = text.replace("@FILL@", WIDE_FILL if way.wide else FILL)
    return text + RUN[storage].replace("ENDED", ended) + MAIN
