#!/bin/bash
# A shell with pipelines, background jobs, substitutions and random numbers: many short processes.
echo "$$ $RANDOM $RANDOM $SECONDS"
for i in 1 2 3; do
    (echo "job $i $BASHPID"; sleep 0.00$i) &
done
wait
date +%N
seq 1 2000 | sort -R | head -5
cat /proc/self/stat | cut -d' ' -f1
x=$(mktemp -u)
echo "$x" "$(od -An -N8 -tx8 /dev/urandom)"
trap 'echo caught' USR1
kill -USR1 $$
echo ok
