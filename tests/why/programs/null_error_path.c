/* A lookup answers NULL for a name that it does not know. build: gcc -g -O0; class: null-pointer */
#include <stdio.h>
#include <string.h>
struct user { const char *name; int age; };
static struct user users[] = {{"ann", 31}, {"bob", 42}};
static struct user *find(const char *name)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(users[i].name, name) == 0)
            return &users[i];
    return NULL; /* ROOT */
}
static int age_of(const char *name)
{
    struct user *user = find(name);
    return user->age;
}
int main(void)
{
    printf("%d\n", age_of("bob"));
    printf("%d\n", age_of("eve"));
    return 0;
}
