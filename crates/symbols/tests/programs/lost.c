/* A variable that is in a register for a while and then nowhere. */
volatile int sink, source;

__attribute__((noipa)) void stop_here(void) { sink++; }

__attribute__((noipa)) int work(void) {
    int doomed = source;
    sink = doomed;
    stop_here();
    return sink;
}

int main(void) { return work(); }
