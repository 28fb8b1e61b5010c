/* Seven functions that set data without len, each for a reason that the analysis must see. */
struct buf { char *data; int len, cap; };
void one(struct buf *b, char *d, int n) { b->data = d; b->len = n; }
void two(struct buf *b, char *d) { b->data = d; b->len = 2; }
void three(struct buf *b, char *d) { b->len = 3; b->data = d; }
void four(struct buf *b, char *d, int n) { b->data = d + n; b->len -= n; }
void five(struct buf *b, char *d) { b->data = d; if (d) b->len = 5; }
void six(struct buf *b, char *d) { b->data = d; b->len = 6; b->cap = 6; }

/* The whole object is zeroed, assigned or fresh. */
void zeroed(struct buf *b, char *d) { memset(b, 0, sizeof(*b)); b->data = d; }
void assigned(struct buf *b, const struct buf *from, char *d) { *b = *from; b->data = d; }
struct buf *fresh(char *d) { struct buf *b = calloc(1, sizeof *b); b->data = d; return b; }
/* It is freed. */
void ended(struct buf *b) { b->data = 0; free(b); }
/* Nobody can read it again. */
void unseen(char *d) { struct buf b; b.data = d; }
/* The caller, or a callee, takes care of len. */
static void set_data(struct buf *b, char *d) { b->data = d; }
void caller(struct buf *b, char *d) { set_data(b, d); b->len = 1; }
static void set_len(struct buf *b, int n) { b->len = n; }
void relies(struct buf *b, char *d) { b->data = d; set_len(b, 9); }
/* Somebody looked at it. */
/* whydunit:ignore(buf::len) the reader measures data itself */
void accepted(struct buf *b, char *d)
{
	/* whydunit:ignore(buf::len) the reader measures data itself */
	b->data = d;
}
