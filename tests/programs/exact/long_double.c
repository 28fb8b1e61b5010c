/* build: -O1 -static
 * x87 through long double: arithmetic, conversions, comparisons. */
int main(void) {
    volatile long double step = 0.1L;
    long double sum = 0, product = 1;
    for (int i = 1; i < 40; i++) {
        sum += step / i;
        product *= 1 + step * i;
        if (product > 1e6L) product = product / 3 - (long)sum;
    }
    return (int)(sum * 100 + (long double)(unsigned long)product + (product == product)) & 127;
}
