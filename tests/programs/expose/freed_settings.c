// depth: 1, a race
// Settings are freed when everybody has surely read them.
#include "expose.h"
struct settings { int level; };
static struct settings *settings;
static int level = -1;
static void *use(void *unused) { level = settings->level; return unused; }
int main(void)
{
    pthread_t thread;
    settings = malloc(sizeof *settings);
    settings->level = 3;
    pthread_create(&thread, NULL, use, NULL);
    work(4 * LONG);
    settings->level = -7;
    free(settings);
    pthread_join(thread, NULL);
    return verdict(level != 3);
}
