#!/bin/sh
# exit: 7
# A `#!` script as the guest: argv[0] and the interpreter are the kernel's business natively.
echo "script ${0##*/} with $# arguments"
set -- a b c
for word; do printf '%s-' "$word"; done; echo
(exit 3); echo "subshell $?"
echo one two three | (read -r first rest; echo "$rest $first")
trap 'echo leaving' EXIT
exit 7
