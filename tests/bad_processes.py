"""Trees of processes in which one goes wrong: a refusal ends all of it at once and is the last word; a fault
of the engine in whichever process is told as the engine's; what a signal ends is not a fault.
"""

import os
import pathlib
import signal
import subprocess
import time

import bed

LIMIT = 60
FAULT, REFUSED, UNDECIDED = 70, 2, 3
LONG = 300

# Attaches a segment at a second place, which cannot be recorded; natively all goes well.
REFUSES = r"""
#include <stdio.h>
#include <sys/shm.h>
int main(void) {
    int segment = shmget(0, 4096, 0600 | IPC_CREAT);
    void *first = shmat(segment, 0, 0);
    shmctl(segment, IPC_RMID, 0);
    return shmat(segment, 0, 0) == first;
}
"""

# Writes over the engine's heap, in a child if there is an argument.
SCRIBBLES = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1 && fork()) return wait(NULL) < 0;
    memset((void *)0x40808d900000, 0x41, 256 << 10);
    for (int i = 0; i < 1000; i++) free(malloc(i)), getppid();
    return 0;
}
"""


def build(folder, name, source):
    path = folder / name
    path.with_suffix(".c").write_text(source)
    subprocess.run(["gcc", "-O1", "-o", path, path.with_suffix(".c")], check=True)
    return str(path)


def check(tool, folder, tally):
    refuses, scribbles = build(folder, "refuses", REFUSES), build(folder, "scribbles", SCRIBBLES)
    for words, code in ((["record", "-f", "-o", "tree.wd"], REFUSED), (["why"], REFUSED),
                        (["slice"], REFUSED), (["run"], UNDECIDED)):
        command = [str(tool), *words, "--", "sh", "-c", f"{refuses}; echo after; sleep {LONG}"]
        tally.say(f"refused in a child: {words[0]}", refused(folder, command, code), " ".join(command))
    for name, arguments in (("the program", []), ("a child", ["child"])):
        command = [str(tool), "run", "--rules", "none", "--", scribbles, *arguments]
        tally.say(f"a fault of ours in {name}", fault(folder, command), " ".join(command))
        command = [str(tool), "record", "-f", "-o", "fault.wd", "--", scribbles, *arguments]
        problem = fault(folder, command) or incomplete(tool, folder, "fault.wd")
        tally.say(f"a fault of ours in {name}, recorded", problem, " ".join(command))
    tally.say("a recording that is there, and no such program", kept(tool, folder))
    for number in (signal.SIGINT, signal.SIGTERM):
        tally.say(f"a check ended by {number.name}", interrupted(tool, folder, number))


def run(folder, command):
    return bed.run(command, folder, dict(os.environ), LIMIT)


def refused(folder, command, code):
    outcome = run(folder, command)
    if outcome.code != code:
        return f"ended with {outcome.end}, expected exit {code}: {bed.last_line(outcome.stderr)}"
    if b"second place" not in outcome.stderr or b"after" in outcome.stdout:
        return f"says {outcome.stderr!r}, and the program {outcome.stdout!r}"
    return None


def fault(folder, command):
    outcome = run(folder, command)
    if outcome.code != FAULT or b"a fault of our own" not in outcome.stderr:
        return f"ended with {outcome.end}: {bed.last_line(outcome.stderr)}"
    return None


def incomplete(tool, folder, file):
    info = run(folder, [str(tool), "info", file])
    return None if info.code == 1 else f"info ends with {info.end}"


def kept(tool, folder):
    run(folder, [str(tool), "record", "-f", "-o", "good.wd", "--", "true"])
    before = (folder / "good.wd").read_bytes()
    outcome = run(folder, [str(tool), "record", "-f", "-o", "good.wd", "--", "/bin/no-such-program"])
    if outcome.code != REFUSED:
        return f"ended with {outcome.end}"
    return None if (folder / "good.wd").read_bytes() == before else "the recording has changed"


def interrupted(tool, folder, number):
    """A check of a long run, ended as soon as its replay runs."""
    loop = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    if not (folder / "long.wd").exists():
        run(folder, [str(tool), "record", "-f", "-o", "long.wd", "--", "sh", "-c", loop])
    process = subprocess.Popen([tool, "check", "long.wd"], cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, preexec_fn=bed.fresh_start)
    try:
        while not children(process.pid) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        said = process.communicate(timeout=LIMIT)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"goes on for {LIMIT} s"
    # Before the replay has begun it is the tool's own to end.
    ended = (128 + number, -number)
    return None if process.returncode in ended else f"ended with {process.returncode}: {said!r}"


def children(process):
    return pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
