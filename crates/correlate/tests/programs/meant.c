/* A structure that is zeroed first: who leaves out a member that others set to zero as well means just
 * that. */
#include <string.h>

struct job { int size; int left; };

void submit(struct job *);

void read_job(int n) { struct job j; memset(&j, 0, sizeof j); j.size = n; j.left = n; submit(&j); }
void write_job(int n) { struct job j; memset(&j, 0, sizeof j); j.size = n; j.left = n; submit(&j); }
void sync_job(int n) { struct job j; memset(&j, 0, sizeof j); j.size = n; j.left = 0; submit(&j); }
void trim_job(int n) { struct job j; memset(&j, 0, sizeof j); j.size = n; j.left = 0; submit(&j); }
void seek_job(int n) { struct job j; memset(&j, 0, sizeof j); j.size = n; j.left = n; submit(&j); }
void stat_job(int n) { struct job j; memset(&j, 0, sizeof j); j.size = n; j.left = n; submit(&j); }
void ping_job(int n)
{
    struct job j;
    memset(&j, 0, sizeof j);
    j.size = n; /* EXCEPTION zero: job::left */
    submit(&j);
}
