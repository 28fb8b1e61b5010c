"""Drives an interactive shell on a pty: jobs, control-Z, fg, bg, control-C. Prints what matters."""

import os
import pty
import re
import select
import sys

FOREGROUND = object()  # what is typed starts a job: the next step is for it
STEPS = [
    ("PS1='<prompt>'; stty -echo\n", "<prompt>"),
    ("echo start-$((1+1))\n", "start-2"),
    ("sleep 100\n", FOREGROUND), ("\x1a", "Stopped"),
    ("jobs | sed 's/^/list /'\n", "list .*Stopped"),
    ("bg %1; echo bg-$?\n", "bg-0"),
    ("fg %1\n", FOREGROUND), ("\x03", "<prompt>"),
    ("echo status-$?\n", "status-130"),
    ("cat | cat\n", FOREGROUND), ("line\n", "line"), ("\x04", "<prompt>"),
    ("(exit 5) & wait $!; echo code-$?\n", "code-5"),
    ("exit 9\n", None),
]


def read_until(master, pattern):
    seen = ""
    while not re.search(pattern, seen, re.S):
        if not select.select([master], [], [], 30)[0]:
            print(f"nothing matched {pattern!r} in {seen!r}")
            os._exit(1)
        try:
            seen += os.read(master, 4096).decode(errors="replace")
        except OSError:
            print(f"ended before {pattern!r}: {seen!r}")
            os._exit(1)
    return seen


def wait_for_foreground(master, shell):
    """Until a job, not the shell, is in the foreground: typing earlier would reach the shell."""
    while os.tcgetpgrp(master) == shell:
        select.select([], [], [], 0.01)
    select.select([], [], [], 0.2)


pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
for typed, expected in STEPS:
    os.write(master, typed.encode())
    if expected is FOREGROUND:
        wait_for_foreground(master, pid)
    elif expected:
        read_until(master, expected)
        print("saw", expected)
_, status = os.waitpid(pid, 0)
print("exit", os.waitstatus_to_exitcode(status))
