/* NULL goes without a length, here and elsewhere: reported last, with the value named. */
struct buf { char *data; int len, cap; };
void one(struct buf *b, char *d, int n) { b->data = d; b->len = n; }
void two(struct buf *b, char *d) { b->data = d; b->len = 2; }
void three(struct buf *b, char *d) { b->len = 3; b->data = d; }
void four(struct buf *b, char *d, int n) { b->data = d + n; b->len -= n; }
void five(struct buf *b, char *d) { b->data = d; if (d) b->len = 5; }
void six(struct buf *b, char *d) { b->data = d; b->len = 6; b->cap = 6; }
void forget(struct buf *b, char *d)
{
	b->cap = 1;
	b->data = d; /* BUG: buf::len */
}
void clear(struct buf *b)
{
	b->data = NULL; /* EXCEPTION NULL: buf::len */
}
void wipe(struct buf *b)
{
	b->cap = 0;
	b->data = NULL; /* EXCEPTION NULL: buf::len */
}
