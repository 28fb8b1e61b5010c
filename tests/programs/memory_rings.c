// build: -O1
// Rings of asynchronous input and output: the kernel maps them where it likes. Nothing that is
// mapped afterwards may lie on one, and each can still be used and given back.
#include "check.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define RINGS 8
#define MAPPINGS 400

int main(void)
{
    static aio_context_t rings[RINGS];
    static char *mapped[MAPPINGS];
    char buffer[16] = "";
    if (syscall(SYS_io_setup, 4, &rings[0])) {
        CHECK(errno == ENOSYS);
        return ok();
    }
    for (int i = 1; i < RINGS; i++) MUST(syscall(SYS_io_setup, 128, &rings[i]));
    for (int i = 0; i < MAPPINGS; i++) {
        mapped[i] = mmap(NULL, 4096 * (1 + i % 3), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mapped[i] != MAP_FAILED);
        memset(mapped[i], 0xa5, 4096 * (1 + i % 3));
        for (int j = 0; j < RINGS; j++)
            CHECK(rings[j] < (unsigned long)mapped[i] || rings[j] >= (unsigned long)mapped[i] + 4096 * (1 + i % 3));
    }
    int file = open("/proc/self/exe", O_RDONLY);
    MUST(file);
    for (int i = 0; i < RINGS; i++) {
        struct iocb request = {
            .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = file,
            .aio_buf = (unsigned long)buffer, .aio_nbytes = 4, .aio_data = 7,
        };
        struct iocb *list[] = {&request};
        struct io_event event;
        CHECK(syscall(SYS_io_submit, rings[i], 1, list) == 1);
        CHECK(syscall(SYS_io_getevents, rings[i], 1, 1, &event, NULL) == 1);
        CHECK(event.data == 7 && event.res == 4 && !memcmp(buffer, "\177ELF", 4));
        MUST(syscall(SYS_io_destroy, rings[i]));
    }
    // The places are free again.
    for (int i = 0; i < MAPPINGS; i++) {
        char *again = mmap((void *)rings[i % RINGS], 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(again != MAP_FAILED);
    }
    return ok();
}
