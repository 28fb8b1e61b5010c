/* What is executed together, and for which object. */
struct item { int key, value, flags; };
struct item *one(int k) { struct item *i = malloc(sizeof *i); i->key = k; i->value = k; i->flags = 1; return i; }
struct item *two(int k) { struct item *i = malloc(sizeof *i); i->key = k; i->value = 2; i->flags = 2; return i; }
struct item *three(int k) { struct item *i = malloc(sizeof *i); i->key = 3; i->value = k; i->flags = 3; return i; }
struct item *four(int k) { struct item *i = malloc(sizeof *i); i->key = k; i->value = k + 4; i->flags = k; return i; }
void five(struct item *i, int k) { i->key = k + 5; i->value = k; i->flags = k; }
void six(struct item *i, int k) { i->key = k + 6; i->value = k; i->flags = k; }
void seven(struct item *i, int k) { i->key = k + 7; i->value = k; i->flags = k; }

/* One or the other, never both. */
void either(struct item *i, int k)
{
	i->flags = k;
	if (k)
		i->key = k;
	else
		i->value = 1;
}
/* A case that falls through goes on to the next. */
void falls(struct item *i, int k)
{
	switch (k) {
	case 1:
		i->key = k;
	case 2:
		i->value = k;
		i->flags = k;
		break;
	}
}
void cases(struct item *i, int k)
{
	i->flags = k;
	switch (k) {
	case 1:
		i->key = k;
		break;
	case 2:
		i->value = k;
		break;
	}
}
/* What it took away it gives back. */
void restores(struct item *i)
{
	int key = i->key;
	i->key = 0;
	work(i);
	i->key = key;
}
/* The second way out forgets what the first one does. */
void leaves(struct item *i, int k)
{
	if (k > 9) {
		i->key = k;
		i->value = k;
		i->flags = k;
		return;
	}
	i->key = 9 * k; /* BUG: item::value */
	i->flags = k;
}
/* Of two objects one is forgotten. */
void both(struct item *a, struct item *b, int k)
{
	a->key = k;
	a->value = k;
	a->flags = k;
	b->key = k + 1; /* BUG: item::value */
	b->flags = k + 1;
}
/* Another name for the same object, and an index that moves on. */
void renamed(struct item *i, int k)
{
	struct item *j = i;
	i->key = k;
	i->flags = k;
	j->key = k;
	j->value = k;
}
void indexed(struct item *i, int n, int k)
{
	i[n].value = k;
	i[n].flags = k;
	i[n++].key = k;
	i[n].key = k;
	i[n].value = k;
}
