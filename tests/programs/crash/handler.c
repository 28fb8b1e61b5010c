// A handler of SIGUSR1 crashes; the stack goes on through the signal's frame to what was
// interrupted. With an argument the handler runs on a stack of its own.
#include <signal.h>
#include <stdlib.h>

static int *volatile nothing;

static void on_signal(int number)
{
    *nothing = number;
}

static void interrupted(void)
{
    raise(SIGUSR1);
}

int main(int argc, char **argv)
{
    (void)argv;
    struct sigaction action = {.sa_handler = on_signal};
    if (argc > 1) {
        stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
        sigaltstack(&stack, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGUSR1, &action, NULL);
    interrupted();
    return 0;
}
