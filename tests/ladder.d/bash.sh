# What only bash does: arrays, regular expressions, mapfile, extended globs, printf -v, BASHPID, select-free.
declare -A count; while read -r word _; do ((count[${word:0:1}]++)); done < "$CORPUS/text"
for k in $(printf '%s\n' "${!count[@]}" | sort | head -5); do echo "$k ${count[$k]}"; done
a=({1..200}); s=0; for n in "${a[@]}"; do ((s += n * n % 17)); done; echo $s
[[ "item-42" =~ ([a-z]+)-([0-9]+) ]] && echo "${BASH_REMATCH[2]} ${BASH_REMATCH[1]}"
mapfile -t lines < <(head -3 "$CORPUS/rows.csv"); echo "${#lines[@]} ${lines[1]}"
shopt -s extglob; echo "${lines[0]//+([0-9])/N}"; printf -v padded '%08.3f' 3.14159; echo "$padded"
f() { local -n ref=$1; ref+=x; }; v=y; f v; echo $v
set -m; (sleep 0.1; exit 4) & fg %1 >/dev/null; echo $?
for i in 1 2 3 4; do (for j in {1..50}; do :; done; exit $i) & done; wait; echo all
exec 3<>/dev/null; echo ${BASH_VERSINFO[0]} > /dev/null; time_out=$( { TIMEFORMAT=; time true; } 2>&1); echo "[$time_out]"
[ $BASHPID = $$ ]; echo $?; ([ $BASHPID = $$ ]; echo $?)
