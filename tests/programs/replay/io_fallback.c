// build: -O1
// Asynchronous input and output: where it is not offered, as in a recording, a program reads by
// itself.
#include "check.h"
#include <linux/aio_abi.h>
#include <sys/random.h>
#include <sys/syscall.h>


static long ring_read(int file, void *into, size_t size)
{
    aio_context_t ring = 0;
    struct iocb request = {
        .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (unsigned)file,
        .aio_buf = (unsigned long)into, .aio_nbytes = size,
    };
    struct iocb *list[] = {&request};
    struct io_event event;
    if (syscall(SYS_io_setup, 8, &ring)) {
        CHECK(errno == ENOSYS);
        return pread(file, into, size, 0);
    }
    CHECK(syscall(SYS_io_submit, ring, 1, list) == 1);
    CHECK(syscall(SYS_io_getevents, ring, 1, 1, &event, NULL) == 1);
    MUST(syscall(SYS_io_destroy, ring));
    return event.res;
}

int main(void)
{
    char path[] = "inputXXXXXX", text[32] = "";
    long number;
    MUST(getrandom(&number, sizeof number, 0));
    int file = mkstemp(path);
    MUST(file);
    snprintf(text, sizeof text, "%ld", number);
    CHECK(pwrite(file, text, sizeof text, 0) == sizeof text);
    memset(text, 0, sizeof text);
    CHECK(ring_read(file, text, sizeof text) == sizeof text);
    CHECK(atol(text) == number);
    printf("%s\n", text);
    MUST(unlink(path));
    puts("ok");
}
