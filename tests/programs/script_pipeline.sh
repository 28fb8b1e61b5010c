#!/bin/bash
# A bash script with pipelines, job control, traps, process substitution, coprocesses, here documents,
# background jobs, wait -n, signals between processes, and arithmetic.
set -u
seq 1 2000 | awk '{s += $1} END {print s}' | rev
sleep 5 & job=$!
kill -TERM $job; wait $job 2>/dev/null; echo "killed $?"
trap 'echo got usr1' USR1
kill -USR1 $$
(kill -USR1 $$) ; echo after
coproc cat; echo "to coproc" >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
exec {COPROC[1]}>&-; wait "$COPROC_PID"
diff <(echo a; echo b) <(echo a; echo c)
while read -r a b; do echo "$b $a"; done <<END
one two
three four
END
# Of jobs that have ended already `wait -n` need not tell, so each is waited for.
jobs=(); for i in 1 2 3; do (exit $i) & jobs+=($!); done
sum=0; for job in "${jobs[@]}"; do wait "$job"; sum=$((sum + $?)); done; echo "sum $sum"
(sleep 0.2; exit 7) & wait -n; echo "the next one $?"
x=0; for ((i = 0; i < 2000; i++)); do x=$(( (x * 31 + i) % 1000003 )); done; echo $x
f() { local n=$1; ((n)) && f $((n - 1)) || echo deep; }; f 100
echo "$(echo "$(echo nested)")"
timeout 0.05 sleep 5; echo "timeout $?"
{ sleep 3 & kill -STOP $!; kill -KILL $!; wait $!; } 2>/dev/null; echo "stopped, then killed: $?"
head -c 100000 /dev/zero | head -c 10 | od -An -c | head -1
yes | head -3
printf '%s\n' "${PIPESTATUS[@]}"
