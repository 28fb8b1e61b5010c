# Stack smashing. At the crash: what made the address to return to?
slice here
#> the address to return to
#> smashed.c:12 (convert)#2
#> through __strcpy
# Which call wrote it? Going back, the strcpy stops, where it is called.
break-call strcpy if write $rsp 8
reverse-continue
#> smashed.c:12
#> call of strcpy
condition-delete 1
# Only what happens in convert, the second time.
record convert#2 on
slice smashed.c:13 2
#> slice 2
prune 2 converted
#> slice 2:
record off
#> slices look at everything
# Without that strcpy the failure is gone; and so it is without the call, and with the decision the other way.
seek main#1
checkpoint
#> checkpoint 1
suppress smashed.c:12 2
continue
#> it does not fail
rollback 1
suppress convert 2
continue
#> it does not fail
rollback 1
switch smashed.c:26 2
continue
#> it does not fail
# The statements that led there, one after the other.
rollback 1
sbreak all 1
#> stops at
continue
#> slice 1, statement
continue
#> slice 1, statement
sdelete 1
info slices
#> slice 2
