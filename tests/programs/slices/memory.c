/* Memory, byte by byte: aliases, overlaps, structures, lists. */
#include "slices.h"
struct node { struct node *next; u64 key; };
static u8 bytes[64];
static u64 words[16];

/* A byte of a word is replaced. */
PROGRAM byte_of_word(u64 x) { union { u64 word; u8 byte[8]; } u; u.word = x * 0x0101; u.byte[2] = 77; return u.word; }
/* A word is read across two that were written. */
PROGRAM across(u64 x) { volatile u32 pair[2] = {x, x + 1}; u64 r; memcpy(&r, (u8 *)pair + 2, 4); return r & 0xffffffff; }
/* Overwritten before it is read. */
PROGRAM overwritten(u64 x) { volatile u64 r = x * 5; r = x * 7; return r; }
/* Two names for one place. */
PROGRAM alias(u64 x) { u64 a = 1, *p = &a, *q = &a; UNKNOWN(p); UNKNOWN(q); *p = x; *q += 2; return a; }
/* Where it is stored is a value as well. */
PROGRAM computed_index(u64 x) { for (u64 i = 0; i < 16; i++) words[i] = i; words[x & 15] = x * 9; return words[(x + 16) & 15]; }
/* Pointers in structures. */
PROGRAM list(u64 x) {
    struct node nodes[5], *head = 0;
    for (int i = 0; i < 5; i++) { nodes[i].key = x + i; nodes[i].next = head; head = &nodes[i]; }
    u64 r = 0;
    for (struct node *p = head; p; p = p->next) if (p->key & 1) r += p->key;
    return r;
}
/* The list is turned around on the way. */
PROGRAM reversed(u64 x) {
    struct node nodes[4], *head = 0, *other = 0;
    for (int i = 0; i < 4; i++) { nodes[i].key = x * i; nodes[i].next = head; head = &nodes[i]; }
    while (head) { struct node *next = head->next; head->next = other; other = head; head = next; }
    return other->next->key;
}
/* Copied as a whole. */
PROGRAM block_copy(u64 x) { struct node a = {0, x + 3}, b; memcpy(&b, &a, sizeof a); return b.key; }
/* Copied onto itself, some bytes further: the first ones repeat. */
PROGRAM overlapping_copy(u64 x) { bytes[0] = x; bytes[1] = 7; memcpy(bytes + 2, bytes, 30); return bytes[20] + bytes[21] * 256; }
/* Filled, then one byte changed. */
PROGRAM filled(u64 x) { memset(bytes, x, 40); bytes[9] = 3; return bytes[8] + bytes[9]; }
/* The length of a copy is a value. */
PROGRAM copied_length(u64 x) { memset(bytes, 1, 32); memcpy(bytes + 32, bytes, x & 7); return bytes[32] + bytes[33]; }
/* The end of a text is looked for. */
PROGRAM text_length(u64 x) { for (u64 i = 0; i < 12; i++) bytes[i] = i < 6 ? x | 1 : 0; u64 n = 0; while (bytes[n]) n++; return n; }
/* A text is compared. */
PROGRAM text_compare(u64 x) {
    u8 a[8] = {1, 2, 3, x, 5}, b[8] = {1, 2, 3, 4, 5};
    int i = 0;
    while (i < 5 && a[i] == b[i]) i++;
    return i < 5 ? a[i] - b[i] : 0;
}
/* Bits of a word that belong to different fields. */
PROGRAM bit_fields(u64 x) { struct { u32 a : 5, b : 11, c : 16; } f; f.a = x; f.b = x * 3; f.c = 9; UNKNOWN(x); return f.b; }
/* Two values change places. */
PROGRAM exchanged(u64 x) { u64 a = x * 2, b = x * 3, *p = &a, *q = &b; UNKNOWN(p); UNKNOWN(q); u64 t = *p; *p = *q; *q = t; return a; }
/* A pointer to a pointer. */
PROGRAM pointer_to_pointer(u64 x) { u64 a = x, b = x + 1, *p = &a, **pp = &p; UNKNOWN(pp); *pp = &b; return **pp; }
/* An array whose size is a value. */
PROGRAM sized_by_value(u64 x) { u64 n = (x & 3) + 2, a[n]; for (u64 i = 0; i < n; i++) a[i] = x - i; return a[n - 1]; }
/* Sorted: what decided where the smallest ended up. */
PROGRAM sorted(u64 x) {
    u64 a[5] = {x * 7 % 11, x * 5 % 11, x * 3 % 11, x % 11, 6};
    for (int i = 0; i < 5; i++) for (int j = i + 1; j < 5; j++) if (a[j] < a[i]) { u64 t = a[i]; a[i] = a[j]; a[j] = t; }
    return a[0];
}
#define LIST(P) P(byte_of_word) P(across) P(overwritten) P(alias) P(computed_index) P(list) P(reversed) \
    P(block_copy) P(overlapping_copy) P(filled) P(copied_length) P(text_length) P(text_compare) \
    P(bit_fields) P(exchanged) P(pointer_to_pointer) P(sized_by_value) P(sorted)
RUN(LIST)
