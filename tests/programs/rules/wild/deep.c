// Runs out of stack.
static int down(volatile int *above)
{
    volatile int here[64];
    here[0] = *above + 1;
    return down(here) + here[0];
}

int main(void)
{
    int first = 0;
    return down(&first);
}
