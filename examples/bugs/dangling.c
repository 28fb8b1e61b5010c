/* A buffer is used after the context that it was shared with has been reclaimed.
 *
 * Interpreter contexts of a font renderer share one glyph buffer. When a context is reclaimed, its
 * buffer goes back to the pool, though others still use it. The pool hands the memory to an
 * instruction stack, which writes numbers over the buffer's header; the next release calls through
 * a pointer that is a number by then.
 *
 * build: gcc -g -o dangling dangling.c
 * ends:  SIGSEGV, call of a wrong address in release
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kind {
    const char *name;
    void (*finalize)(void *object);
};

struct buffer {
    const struct kind *kind;
    long size;
    unsigned char bytes[48];
};

struct context {
    struct buffer *glyphs;
    int runs;
};

static unsigned char pool[4][64];
static int is_used[4];

static void glyphs_done(void *object) {
    memset(((struct buffer *)object)->bytes, 0, 48);
}

static const struct kind glyph_kind = {"glyphs", glyphs_done};

static void *take(void) {
    for (int i = 0; i < 4; i++)
        if (!is_used[i]) {
            is_used[i] = 1;
            return pool[i];
        }
    return NULL;
}

static void give_back(void *object) {
    int i = ((unsigned char *)object - pool[0]) / 64;
    is_used[i] = 0;
}

static struct buffer *new_buffer(void) {
    struct buffer *buffer = take();
    buffer->kind = &glyph_kind;
    buffer->size = 48;
    return buffer;
}

static void release(struct buffer *buffer) {
    const struct kind *kind = buffer->kind;
    kind->finalize(buffer);
    give_back(buffer);
}

static void reclaim(struct context *context) {
    give_back(context->glyphs); /* the shared buffer goes back too early */
    context->glyphs = NULL;
}

static void run_instructions(struct context *context, long *numbers, int count) {
    long *args = take();
    for (int i = 0; i < count; i++)
        args[i] = numbers[i]; /* ROOT: overwrites the header of the buffer */
    context->runs++;
    for (int i = 1; i < count; i++)
        args[0] += args[i];
    printf("result %ld\n", args[0]);
}

int main(void) {
    long numbers[] = {4096, 12, 7, 3};
    struct buffer *shared = new_buffer();
    struct context first = {shared, 0}, second = {shared, 0};
    reclaim(&first);
    run_instructions(&second, numbers, 4);
    release(second.glyphs);
    puts("done");
    return 0;
}
