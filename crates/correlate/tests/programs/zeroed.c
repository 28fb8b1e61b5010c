/* Requests are zeroed or written as literals, and then filled. Everybody fills in the size, so a zero
   there means that it was forgotten. Nobody has to fill in the flags. */
struct request { int kind, size, flags; };
void *xcalloc(int n, int size) { void *p = calloc(n, size); if (!p) die(); return p; }
void send(struct request *r);

void read_file(struct request *r) { memset(r, 0, sizeof(*r)); r->kind = 1; r->size = 10; }
void read_pipe(struct request *r) { memset(r, 0, sizeof(*r)); r->kind = 2; r->size = 11; r->flags = 1; }
struct request *read_disk(void) { struct request *r = xcalloc(1, sizeof(*r)); r->kind = 3; r->size = 12; return r; }
struct request *read_tape(void) { struct request *r = xcalloc(1, sizeof(*r)); r->kind = 4; r->size = 13; return r; }
void read_card(void) { struct request r = { .kind = 5, .size = 14 }; send(&r); }
void read_line(void) { struct request r = { .kind = 6, .size = 15, .flags = 2 }; send(&r); }
void read_host(void) { struct request r = {0}; r.kind = 7; r.size = 16; send(&r); }

void read_ring(struct request *r) { memset(r, 0, sizeof(*r)); r->kind = 8; } /* BUG: request::size */
void read_fifo(void) { struct request r = { .kind = 9 }; send(&r); } /* BUG: request::size */
struct request *read_wire(void) { struct request *r = xcalloc(1, sizeof(*r)); r->kind = 10; return r; } /* BUG: request::size */
/* Here it is no zero that is left there. */
void copy_ring(struct request *r, struct request *from) { *r = *from; r->kind = 11; }
