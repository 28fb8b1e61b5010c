// What `whydunit demo` runs. A book is bought but never put on the shelf, and the function that
// adds up the pages of a reading list does not ask whether every book was found.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct book {
    const char *title;
    int pages;
    struct book *next;
};

static struct book *shelf;

static struct book *buy(const char *title, int pages)
{
    struct book *book = malloc(sizeof *book);
    *book = (struct book){title, pages, NULL};
    return book;
}

static void put_on_shelf(struct book *book)
{
    book->next = shelf;
    shelf = book;
}

static struct book *find(const char *title)
{
    struct book *book = shelf;
    while (book && strcmp(book->title, title) != 0)
        book = book->next;
    return book;
}

static int pages_of(const struct book *book)
{
    return book->pages;
}

static int pages_to_read(const char **titles, int count)
{
    int total = 0;
    for (int i = 0; i < count; i++)
        total += pages_of(find(titles[i]));
    return total;
}

int main(void)
{
    const char *list[] = {"Persuasion", "Emma", "Middlemarch"};
    put_on_shelf(buy("Middlemarch", 880));
    put_on_shelf(buy("Persuasion", 249));
    buy("Emma", 474);
    printf("adding up the pages of %d books\n", 3);
    fflush(stdout);
    printf("%d pages to read\n", pages_to_read(list, 3));
    return 0;
}
