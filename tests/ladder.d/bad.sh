#!/bin/sh
# Badly written on purpose: shellcheck must find the same faults as ever.
for f in $(ls *.txt); do echo $f; done
if [ $1 = "x" ]; then cd $2; rm -r $UNSET/*; fi
