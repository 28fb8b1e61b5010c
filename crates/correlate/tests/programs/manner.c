/* Two functions write the length alone. One moves on in a buffer, as nobody who sets both does; the
   other sets it just like them, and is the likelier bug. */
struct buffer {
	char *base;
	int len;
};

void from_file(struct buffer *b, char *p, int n) { b->base = p; b->len = n; }
void from_pipe(struct buffer *b, char *p, int n) { b->base = p; b->len = n / 2; }
void from_disk(struct buffer *b, char *p, int n) { b->base = p; b->len = n * 2; }
void from_tape(struct buffer *b, char *p, int n) { b->base = p; b->len = n + 1; }
void from_card(struct buffer *b, char *p, int n) { b->base = p; b->len = n - 1; }
void from_line(struct buffer *b, char *p, int n) { b->base = p; b->len = n % 8; }

void move_on(struct buffer *b, int n) { b->len -= n; } /* EXCEPTION manner: buffer::base */
void from_host(struct buffer *b, int n) { b->len = n / 4; } /* BUG: buffer::base */
