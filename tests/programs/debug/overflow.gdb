# Heap buffer overflow. The allocator gives up; what it looked at depends on line 18, which only fills a table.
slice here
#> overflow.c:18 (more_arrays)
#> overflow.c:17 (more_arrays)
# Is it to blame? Without it the program goes on.
seek main#1
checkpoint
suppress overflow.c:18 all
continue
#> it does not fail
# The first execution that is too many is the 33rd; the decision before it is wrong.
rollback 1
switch overflow.c:17 33
continue
#> it does not fail
rollback 1
break-if overflow.c:18 if index == array_count
continue
#> overflow.c:18 if index == array_count
p index
#> = 32
p variable_count
#> = 64
instance overflow.c:18
#> execution 33 of
catch-findings
continue
#> finding 1
