// finds: data-race
// The address of a loop's variable is handed to each thread, instead of a copy.
#include "twin.h"
static void *work(void *argument) { sink(*(int *)argument); return NULL; }
int main(void)
{
    pthread_t threads[3];
    int numbers[3];
    volatile int i;
    for (i = 0; i < 3; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, TWIN((void *)&i, &numbers[i]));
    }
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    return 0;
}
