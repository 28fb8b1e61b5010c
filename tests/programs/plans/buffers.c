// System calls that read and write memory in several ways: a buffer, a vector, an answer of a fixed size,
// a text, and a buffer that is longer than what came.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

static char got[100];
static char hello[] = "hello";
static char path[] = "/dev/null";

int main(void)
{
    int ends[2];
    struct iovec pieces[2] = {{hello, 2}, {hello + 3, 2}};
    if (pipe(ends) != 0)
        return 1;
    write(ends[1], hello, 5);
    writev(ends[1], pieces, 2);
    open(path, O_RDONLY);
    return read(ends[0], got, sizeof got) == 9 ? 0 : 2;
}
