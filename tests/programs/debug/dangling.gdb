# Dangling pointer. The function that is called is a text; who freed the object?
p object
break-call free if arg1==object
reverse-continue
#> call of free
bt 2
#> drop (object=
#> dangling.c:32
condition-delete 1
# Who used its place anew?
break-call malloc if ret==object
continue
#> dangling.c:33
reverse-continue
#> dangling.c:21
condition-delete 2
seek main#1
suppress drop 1
continue
#> it does not fail
back
#> back in the recording
findings
#> dangling-pointer
