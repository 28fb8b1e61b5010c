/* New objects, and objects that exist. */
struct item { int key, value, flags; };
struct item *one(int k) { struct item *i = malloc(sizeof *i); i->key = k; i->value = k; i->flags = 1; return i; }
struct item *two(int k) { struct item *i = pool_alloc(9); i->key = k; i->value = 2; i->flags = 2; return i; }
struct item *three(int k) { struct item *i = malloc(sizeof *i); i->key = k + 3; i->value = k; i->flags = 3; return i; }
void four(int k) { struct item i; i.key = k; i.value = k + 4; i.flags = k; use(&i); }
void five(int k) { struct item i; i.key = k + 5; i.value = k; i.flags = k; use(&i); }
void six(int k) { struct item i; i.key = k + 6; i.value = k; i.flags = k; use(&i); }

/* What lies in the memory is what value will be. */
void unset(int k)
{
	struct item i;
	i.key = k; /* BUG uninitialised: item::value */
	i.flags = k;
	use(&i);
}
/* Somebody may have set it before. */
void handed(int k)
{
	struct item i;
	prepare(&i);
	i.key = k; /* BUG: item::value */
	i.flags = k;
	use(&i);
}
/* This one has had its value for long. */
void changes(struct item *i, int k)
{
	i->key = k; /* EXCEPTION existing: item::value */
	i->flags = k;
}
