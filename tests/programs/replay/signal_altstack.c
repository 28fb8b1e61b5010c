// build: -O1
// Handlers on an alternate stack, of a fault and of a timer, nested; addresses are printed.
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

static sigjmp_buf back;
static volatile int alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    char here;
    struct itimerval soon = {.it_value = {0, 1}};
    int before = alarms;
    MUST(setitimer(ITIMER_REAL, &soon, NULL));
    while (alarms == before) {}
    printf("signal %d address %p stack %p\n", number, info->si_addr, (void *)&here);
    siglongjmp(back, 1);
}

int main(void)
{
    size_t size = 1 << 16;
    stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
    MUST(sigaltstack(&stack, NULL));
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    struct sigaction alarm_action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
    MUST(sigaction(SIGSEGV, &fault, NULL));
    MUST(sigaction(SIGALRM, &alarm_action, NULL));
    char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    for (volatile int i = 0; i < 5; i++)
        if (sigsetjmp(back, 1) == 0) ((volatile char *)page)[i * 8] = 1;
    CHECK(alarms >= 5);
    return ok();
}
