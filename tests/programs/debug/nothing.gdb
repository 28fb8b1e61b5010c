# NULL pointer. Where does it come from?
origin names
#> nothing.c:15 (count)
origin
#> nothing.c:26 (main)
origin
#> nothing.c:25 (main)
origin
#> nothing.c:11 (folder_names)
why
#> nothing.c:10 (folder_names)#3
# The decision there is the one to change.
seek main#1
switch nothing.c:10 3
break nothing.c:26
continue
continue
continue
p names
#> "key"
continue
#> it does not fail
#> output     7
back
#> nothing.c:10
# Only the steps of the value.
slice nothing.c:26 3 names
#> slice 1: names at nothing.c:26#3
seek start
sstep
#> slice 1, statement
sstep
#> slice 1, statement
rsstep
#> slice 1, statement
when
#> @
