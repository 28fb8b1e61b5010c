// A function is told a wrong length of its caller's array.
// build: -fno-stack-protector
static void clear(int *numbers, int count) {
    for (int i = 0; i < count; i++)
        numbers[i] = 0; // FINDS stack-overflow
}

int main(void) {
    int guard[16] = {1};
    int numbers[6];
#ifdef FIXED
    clear(numbers, 6);
#else
    clear(numbers, 7);
#endif
    return numbers[0] + guard[0] == 9;
}
