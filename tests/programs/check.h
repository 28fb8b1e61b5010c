/* What the little programs share: a check that names its line, and a few shorthands.
 *
 * A program prints `ok` at its end, so that an early clean exit is a difference too. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the program with status 1 and the place, unless the condition holds. Safe in handlers and
 * in children: it writes with one system call and runs no exit handlers. It is a barrier too:
 * glibc calls raise and kill leaf functions, so the compiler would not reload what a handler set. */
#define CHECK(condition)                                                                        \
    do {                                                                                        \
        __asm__ volatile("" ::: "memory");                                                      \
        if (!(condition)) {                                                                     \
            char text_[300];                                                                    \
            int length_ = snprintf(text_, sizeof text_, "%s:%d: not true: %s (errno %d)\n",     \
                                   __FILE__, __LINE__, #condition, errno);                      \
            if (length_ > (int)sizeof text_ - 1) length_ = sizeof text_ - 1;                    \
            if (write(2, text_, (size_t)length_) < 0) _exit(2);                                 \
            _exit(1);                                                                           \
        }                                                                                       \
    } while (0)

/* A call that returns -1 on failure. */
#define MUST(call) CHECK((call) != -1)

static inline int ok(void)
{
    puts("ok");
    return 0;
}

#endif
