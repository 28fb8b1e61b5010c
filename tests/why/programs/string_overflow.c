/* strcpy into a member that is too small overwrites the function behind it. build: gcc -g -O0; class: wild-jump,wild-pointer,out-of-bounds */
#include <stdio.h>
#include <string.h>
struct command { char name[8]; void (*run)(void); };
static void hello(void) { puts("hello"); }
static void set_name(struct command *command, const char *name)
{
    strcpy(command->name, name); /* ROOT */
}
int main(void)
{
    static struct command command = {"none", hello};
    set_name(&command, "a very long name");
    command.run();
    return 0;
}
