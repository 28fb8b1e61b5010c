# Double free. Which block is it, and who freed it before?
frame function release
#> free(old->code)
break-call free if arg1==old->code
reverse-continue
#> call of free
bt 2
#> twice.c:41
reverse-continue
#> call of free
bt 2
#> twice.c:38
condition-delete 1
# Where does that pointer come from? From the shallow copy.
origin old->code
#> is made here, at
#> twice.c:23 (duplicate)
# The failure depends on these.
seek main#1
checkpoint
switch twice.c:40 1
continue
#> it does not fail
rollback 1
suppress release 1
continue
#> it does not fail
# What the rules say.
findings
#> double-free
