# What every POSIX shell does: functions, loops, pipelines, traps, here documents, background jobs.
fact() { if [ "$1" -le 1 ]; then echo 1; else echo $(($1 * $(fact $(($1 - 1))))); fi; }
fact 10
i=0; while [ $i -lt 500 ]; do i=$((i + 1)); done; echo $i
for f in a b c; do echo "$f"; done | while read -r x; do printf '<%s>' "$x"; done; echo
case hello in h*o) echo match ;; *) echo none ;; esac
trap 'echo term' TERM; kill -TERM $$; trap - TERM
(exit 7); echo $?
{ echo out; echo err >&2; } 2>&1 | sort
cat <<END | tr a-z A-Z
here document $((6 * 7))
END
sleep 0.05 & wait $!; echo "waited $?"
x=$(printf 'a\nb\n' | wc -l); echo $x
set -- one two three; shift; echo "$# $*"
command -v no-such-command || echo absent
no-such-command 2>/dev/null; echo $?
echo done
