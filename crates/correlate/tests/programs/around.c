/* Everybody who sets the data of a buffer sets its length. Those below do not, for a reason each that is
   to be seen in what they do themselves or in what is done to the same object around them. */
struct buf { char *data; int len, cap; union { int small; struct { int large, extra; }; }; };
struct page { struct buf text; int number; };
struct list { struct item *head; int count; };
struct item { struct item *next; int value; };

void one(struct buf *b, char *d, int n) { b->data = d; b->len = n; b->cap = 1; }
void two(struct buf *b, char *d) { b->data = d; b->len = 2; b->cap = 2; }
void three(struct buf *b, char *d) { b->len = 3; b->data = d; b->cap = 3; }
void four(struct buf *b, char *d, int n) { b->data = d + n; b->len = n; b->cap = 4; }
void five(struct buf *b, char *d) { b->data = d; if (d) b->len = 5; b->cap = 5; }
void six(struct buf *b, char *d) { b->data = d; b->len = 6; b->cap = 6; }

/* The object comes from a function that sets it, or goes to one, at any depth. */
static void resize(struct buf *b, int n) { if (n) b->len = n; }
static void resize_later(struct buf *b) { resize(b, 7); }
void callee_sets(struct buf *b, char *d) { b->data = d; b->cap = 7; resize_later(b); }
static struct buf *make_any(int n) { struct buf *b = get_block(); b->len = n; return b; }
static struct buf *make(int n) { return make_any(n); }
struct buf *constructor_sets(char *d) { struct buf *b = make(8); b->data = d; b->cap = 8; return b; }
/* All who call it take care of it. */
static void attach(struct buf *b, char *d) { b->data = d + 1; b->cap = 9; }
void caller_sets(struct buf *x, char *d) { x->len = 9; attach(x, d); }
void caller_sets_too(struct buf *x, char *d) { attach(x, d); resize(x, 9); }
/* A struct around it is assigned, and it with it. */
void turn_page(struct page *p, struct page *from, char *d) { *p = *from; p->text.data = d + 2; p->text.cap = 3; }
/* It is assigned as a member of a struct. A pointer to it is not it. */
struct holder { struct buf *ref; };
void member_assigned(struct page *p, const struct buf *from, char *d) { p->text = *from; p->text.data = d + 3; p->text.cap = 4; }
void pointer_assigned(struct holder *h, struct buf *b, char *d) { h->ref = b; b->data = d + 4; b->cap = 5; } /* BUG: buf::len */
/* It sets what it is given, and nothing else. */
void set_data(struct buf *b, char *d) { b->data = d; }
/* The elements of what it points to are not the pointer. */
void fill(struct buf *b, char c) { b->data[0] = c; *b->data = c; b->cap = 10; }

/* Large ones have no `small`; the two share their memory. */
void s1(struct buf *b, int n) { b->cap = n; b->small = n + 1; }
void s2(struct buf *b, int n) { b->cap = n; b->small = n + 2; }
void s3(struct buf *b, int n) { b->cap = n; b->small = n + 3; }
void s4(struct buf *b, int n) { b->cap = n; b->small = n + 4; }
void s5(struct buf *b, int n) { b->cap = n; b->small = n + 5; }
void s6(struct buf *b, int n) { b->cap = n; b->small = n + 6; }
void s7(struct buf *b, int n) { b->cap = n; b->small = n + 7; }
void s8(struct buf *b, int n) { b->cap = n; b->small = n + 8; }
void s9(struct buf *b, int n) { b->cap = n; b->small = n + 9; }
void s10(struct buf *b, int n) { b->cap = n; b->small = n + 10; }
void s11(struct buf *b, int n) { b->cap = n; b->small = n + 11; }
void s12(struct buf *b, int n) { b->cap = n; b->small = n + 12; }
void s13(struct buf *b, int n) { b->cap = n; b->small = n + 13; }
void s14(struct buf *b, int n) { b->cap = n; b->small = n + 14; }
void s15(struct buf *b, int n) { b->cap = n; b->small = n + 15; }
void s16(struct buf *b, int n) { b->cap = n; b->small = n + 16; }
void s17(struct buf *b, int n) { b->cap = n; b->small = n + 17; }
void variant(struct buf *b, int n) { b->cap = n; b->large = n; b->extra = n; }

/* A list that is turned keeps its length; the one that drops an item does not. */
void push(struct list *l, struct item *i) { i->next = l->head; l->head = i; l->count++; }
void push_two(struct list *l, struct item *i) { l->head = i; l->count += 2; }
void pop(struct list *l) { l->head = l->head->next; l->count--; }
void add_first(struct list *l, struct item *i) { l->head = i; l->count += 1; }
void cut(struct list *l, int n) { l->head = skip(l, n); l->count -= n; }
void turn(struct list *l, struct item *last) { last->next = l->head; l->head = last; } /* EXCEPTION relink: list::count */
void remove_first(struct list *l) { l->head = l->head->next; } /* BUG: list::count */
