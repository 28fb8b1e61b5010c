/* No libc and a stack of its own, so that every address is the same under any tool: sorts,
 * divides, recurses, copies; for the comparison of accesses with valgrind's lackey. */
typedef unsigned long word;

static word numbers[64], copy[64], stack[1024];
static struct { char small; short middle; int large; } mixed[16];

__attribute__((noinline)) static void sort(word *from, long count) {
    if (count < 2) return;
    word pivot = from[count / 2];
    long low = 0, high = count - 1;
    while (low <= high) {
        while (from[low] < pivot) low++;
        while (from[high] > pivot) high--;
        if (low <= high) {
            word swapped = from[low];
            from[low++] = from[high];
            from[high--] = swapped;
        }
    }
    sort(from, high + 1);
    sort(from + low, count - low);
}

__attribute__((noinline)) static word digits(word number) {
    return number ? digits(number / 10) + number % 10 : 0;
}

__attribute__((noinline)) static void fill(void) {
    for (word i = 0, seed = 1; i < 64; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        numbers[i] = seed >> 20;
        mixed[i % 16].small += seed >> 8;
        mixed[i % 16].middle ^= seed >> 16;
        mixed[i % 16].large -= seed >> 32;
    }
}

__attribute__((noinline, used)) static int work(void) {
    word sum = 0;
    fill();
    for (int i = 0; i < 64; i++) copy[i] = numbers[i];
    sort(copy, 64);
    for (int i = 0; i < 64; i++) sum += digits(copy[i]) * mixed[i % 16].large;
    return sum & 127;
}

__asm__(".globl _start\n_start:\n"
        "    lea stack + 8000(%rip), %rsp\n"
        "    call work\n"
        "    mov %eax, %edi\n"
        "    mov $60, %eax\n"
        "    syscall\n");
word *keep_stack = stack;
