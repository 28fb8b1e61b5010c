"""What every test script shares: where the tool is, how each mode is spelled, and how one run is
made and compared.

It knows nothing about particular programs or jobs. A *mode* is a prefix to a guest command line, by
its name or as the words themselves; `native` is the empty prefix. A run is described by its
`Outcome`: what it printed and how it ended.
"""

import dataclasses
import json
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / "target/x86_64-unknown-linux-gnu/release/whydunit"
OUR_FAULT = 70
FAULT_WORDS = (b"fault of our own", b"panicked at")
MODES = ("plain", "count", "trace", "ticks", "shadow", "rules")


def prefix(tool, mode, counts=None, stats=None, flags=()):
    """The words that go before a guest command line in a mode; `counts` and `stats` are files."""
    if isinstance(mode, list):
        return mode
    if mode == "native":
        return []
    words = [str(tool)]
    if mode == "count":
        words += ["count", "--json"] + (["-o", str(counts)] if counts else [])
    elif mode == "plain":
        words += ["run", "--rules", "none"]
    elif mode == "rules":
        # As people type it.
        words += ["run", "--json", "-o", str(counts or "/dev/null")]
    else:
        observed = {"trace": "memory"}.get(mode, mode)
        words += ["run", "--observe", observed] + (["--stats", str(stats)] if stats else [])
    return words + [*flags, "--exit-code=guest", "--"]


def modes(text):
    """Parses `--modes`."""
    chosen = [word for word in text.split(",") if word]
    for word in chosen:
        if word not in MODES and word != "native":
            raise SystemExit(f"no mode '{word}'; there are: {', '.join(MODES)}")
    return chosen


@dataclasses.dataclass
class Outcome:
    """How a run went. `code` is negative for a fatal signal, None where the time was over."""

    code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def end(self):
        if self.code is None:
            return "out of time"
        if self.code < 0:
            return signal.Signals(-self.code).name
        return f"exit {self.code}"

    def is_our_fault(self):
        return self.code == OUR_FAULT or any(word in self.stderr for word in FAULT_WORDS)


def fresh_start():
    """Before exec: no core files, as many guests crash on purpose; and signals as a terminal would
    leave them, as shells start background jobs with SIGINT ignored, which guests would inherit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def run(command, cwd, env, limit, stdin=None, user=None):
    """Runs a command in a session of its own; at the limit, or when it ends, its group is ended.

    With `user`, (uid, gid), it runs as that user.
    """
    who = {"user": user[0], "group": user[1], "extra_groups": []} if user else {}
    begun = time.monotonic()
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=fresh_start, **who,
    )
    try:
        out, err = process.communicate(stdin, timeout=limit)
        code = process.returncode
    except subprocess.TimeoutExpired:
        end_group(process.pid)
        try:
            out, err = process.communicate(timeout=5)
        except subprocess.TimeoutExpired as late:  # someone outside the group holds the pipe
            out, err = late.stdout or b"", late.stderr or b""
        code = None
    end_group(process.pid)
    return Outcome(code, out, err, time.monotonic() - begun)


def end_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def too_many_skipped(skipped, of):
    """What is wrong where so much was left out that what passed says little: more than one in ten."""
    if skipped * 10 <= of:
        return None
    return f"FAIL  {skipped} of {of} were skipped: scripts/install-test-needs installs what is missing"


def same_end(native, ours):
    """A fatal signal may be passed on as itself or, as shells do, as 128 + its number."""
    if native.code is not None and native.code < 0 and ours.code == 128 - native.code:
        return True
    return native.code == ours.code


def is_subsequence(needles, haystack):
    rest = iter(haystack)
    return all(needle in rest for needle in needles)


def difference(native, ours, reports=False):
    """What differs, in one line, or None.

    Where the tool `reports` something of its own on stderr, a crash or a refusal, the native lines
    must appear there in order; everywhere else stderr must be the same byte for byte.
    """
    if not same_end(native, ours):
        tail = last_line(ours.stderr)
        return f"ended with {ours.end}, native with {native.end}" + (f": {tail}" if tail else "")
    if native.stdout != ours.stdout:
        return "stdout " + first_change(native.stdout, ours.stdout)
    if reports:
        if not is_subsequence(native.stderr.splitlines(), ours.stderr.splitlines()):
            return "stderr " + first_change(native.stderr, ours.stderr)
    elif native.stderr != ours.stderr:
        return "stderr " + first_change(native.stderr, ours.stderr)
    return None


def last_line(text):
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def first_change(expected, found):
    """Where two texts part, for a person."""
    left, right = expected.splitlines(), found.splitlines()
    for number, (one, other) in enumerate(zip(left, right), 1):
        if one != other:
            return f"line {number}: expected {one[:120]!r}, found {other[:120]!r}"
    return f"has {len(right)} lines ({len(found)} bytes), expected {len(left)} ({len(expected)})"


def counts_problem(path):
    """What is wrong with the file that `count --json -o` wrote, or None."""
    try:
        json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as problem:
        return f"the counts are unusable: {problem}"
    return None


def shell(command, cwd, env=()):
    """The line that repeats a run in a terminal."""
    settings = [f"{key}={value}" for key, value in env]
    words = (["env"] + settings if settings else []) + [str(word) for word in command]
    return f"cd {shlex.quote(str(cwd))} && {shlex.join(words)}"
