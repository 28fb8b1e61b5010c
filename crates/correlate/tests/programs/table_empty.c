/* A flag says whether the table holds anything. One fill forgets the flag. */
#define SIZE 16
struct entry { int key; };
struct cache { struct entry *table[SIZE]; int empty; int hits; };
typedef struct cache Cache;

void flush(Cache *cache) { memset(cache->table, 0, sizeof cache->table); cache->empty = 1; }
void fill(Cache *cache, struct entry *e) { cache->table[e->key % SIZE] = e; cache->empty = 0; }
void drop(Cache *cache, int key) { cache->table[key % SIZE] = NULL; cache->empty = count(cache) == 0; }
void take(Cache *c, Cache *other) { c->table[0] = other->table[0]; c->empty = other->empty; }
void seed(struct cache *cache, struct entry *e) { if (cache->empty) cache->table[0] = e; cache->empty = 0; }
void trim(Cache *cache, int from) { for (; from < SIZE; from++) cache->table[from] = 0; cache->empty = from == 0; }
void refill(Cache *cache, struct entry *e)
{
	cache->hits++;
	cache->table[1] = e; /* BUG: cache::empty */
}
