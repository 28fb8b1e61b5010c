// build: -O1
// sendfile, splice, tee, vmsplice and copy_file_range: bytes move without passing through the
// program's memory, then it looks at them.
#include "check.h"
#include <fcntl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static void show(const char *name, int descriptor, size_t count)
{
    unsigned char bytes[4096];
    unsigned long long sum = 0;
    ssize_t got = read(descriptor, bytes, count);
    MUST(got);
    for (ssize_t i = 0; i < got; i++) sum = sum * 31 + bytes[i];
    printf("%s %zd bytes %llx\n", name, got, sum);
}

int main(void)
{
    unsigned char noise[4096];
    CHECK(getrandom(noise, sizeof noise, 0) == sizeof noise);
    int file = open("splice.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(file);
    CHECK(write(file, noise, sizeof noise) == sizeof noise);
    int one[2], two[2];
    MUST(pipe(one));
    MUST(pipe(two));
    off_t offset = 100;
    CHECK(sendfile(one[1], file, &offset, 1000) == 1000 && offset == 1100);
    CHECK(tee(one[0], two[1], 700, 0) == 700);
    show("tee", two[0], 700);
    show("sendfile", one[0], 1000);
    loff_t place = 2000;
    CHECK(splice(file, &place, one[1], NULL, 500, 0) == 500 && place == 2500);
    CHECK(splice(one[0], NULL, two[1], NULL, 500, 0) == 500);
    show("splice", two[0], 500);
    struct iovec part = {noise + 64, 64};
    CHECK(vmsplice(one[1], &part, 1, 0) == 64);
    show("vmsplice", one[0], 64);
    int copy = open("splice.copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(copy);
    loff_t from = 0;
    CHECK(copy_file_range(file, &from, copy, NULL, 3000, 0) == 3000);
    CHECK(lseek(copy, 0, SEEK_SET) == 0);
    show("copy", copy, 3000);
    unlink("splice.tmp");
    unlink("splice.copy");
    return ok();
}
