"""What the scripts about record and replay share: how the commands are spelled, and the trial that
each of them makes: record a guest once, replay it many times, compare.

A *trial* is about one guest under one schedule. What the guest wrote while it was recorded must come
out of every replay, byte for byte, with every check of the tool's own passed and the same counts; and
the files of that day are out of the way meanwhile. Several processes are replayed one after the
other, so of these the lines are compared without their order.
"""

import contextlib
import dataclasses
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import shlex
import shutil
import time

import bed

# Of what the tool itself says the last part may follow a line of the guest's that has no end.
OWN_LINE = re.compile(rb"^whydunit: .*\n?|whydunit: process \d+ went as recorded: .*\n?", re.M)
REFUSED = re.compile(rb"^whydunit: .*(?:cannot be recorded|is not recorded)", re.M)
ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def script(name):
    """Another script of the bed, as a module."""
    path = bed.ROOT / "tests" / name
    loader = importlib.machinery.SourceFileLoader(path.name.replace("-", "_") + "_script", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def schedules(seed):
    return ["fair", f"random:{seed}", f"pct:3,{seed}"]


def record_words(tool, file, schedule="fair", flags=()):
    """What goes before a guest to record it."""
    return [str(tool), "record", "--quiet", "--force", "-o", str(file), "--schedule", schedule, *flags,
            "--exit-code=guest", "--"]


def replay_words(tool, file, *flags):
    return [str(tool), "replay", str(file), *flags]


def run_in_nowhere(words, limit, folder):
    """A command that needs no folder, no input and no environment of the recorded day."""
    return bed.run(words, folder, ENV, limit)


def info(tool, file, folder):
    outcome = run_in_nowhere([str(tool), "info", "--json", str(file)], 60, folder)
    return json.loads(outcome.stdout)["result"] if outcome.code in (0, 1) else None


def without_own_lines(text):
    """stderr without what the tool itself said."""
    return OWN_LINE.sub(b"", text)


@dataclasses.dataclass
class Result:
    """`problem` None is a pass; `refused` says why there is no recording; `again` repeats it."""

    problem: str | None = None
    refused: str | None = None
    again: str = ""
    replays: int = 0
    seconds: float = 0.0


class Trial:
    """`run(mode)` runs the guest with these words in front and returns (command to repeat it,
    Outcome); `judge(outcome)` tells what is wrong with the recorded run itself; `hidden` are paths
    that are moved away while it is replayed."""

    def __init__(self, tool, file, run, judge, hidden=(), limit=120):
        self.tool, self.file, self.run, self.judge = tool, pathlib.Path(file), run, judge
        self.hidden, self.limit = hidden, limit
        self.prints = True  # whether what the run printed is what the guest printed
        self.streams = ("stdout", "stderr")  # those that a replay must print too
        self.several = False  # whether the run records more than once
        self.budget = None  # seconds that the replays of one recording may take; None for all of them
        self.nowhere = self.file.parent / (self.file.name + ".nowhere")

    def check(self, schedule, times, counts=2, flags=()):
        """Records once and replays `times` times, and counts that many more times; with a budget as
        often as it allows, each at least once."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        for old in self.files():
            old.unlink()
        self.nowhere.mkdir(exist_ok=True)
        words = record_words(self.tool, self.file, schedule, flags)
        again, recorded = self.run(self.each_its_own(words) if self.several else words)
        if REFUSED.search(recorded.stderr):
            return Result(refused=bed.last_line(recorded.stderr), again=again)
        problem = self.judge(recorded)
        if not problem and not self.files():
            problem = "there is no recording"
        if problem:
            return Result(f"recorded: {problem}", again=again, seconds=recorded.seconds)
        result = Result(seconds=recorded.seconds, again=again)
        with moved_away(self.hidden):
            for file in self.files():
                one = self.replays(file, recorded, times, counts)
                result.replays += one.replays
                if one.problem:
                    return one
                file.unlink()
        self.nowhere.rmdir()
        return result

    def files(self):
        """The recordings there are: one, or one for each time that the tool was run."""
        names = re.compile(re.escape(self.file.name) + (r"\.\d+" if self.several else ""))
        return sorted(path for path in self.file.parent.iterdir() if names.fullmatch(path.name) and path.is_file())

    def each_its_own(self, words):
        """The words of a little script that records to a file of its own each time, as anybody."""
        script = self.file.parent / (self.file.name + ".record")
        at = words.index("-o") + 1
        before, after = shlex.join(words[:at]), shlex.join(words[at + 1:-1])
        script.write_text(f"#!/bin/sh\nexec {before} {shlex.quote(str(self.file))}.$$ {after} \"$@\"\n")
        script.chmod(0o755)
        self.file.parent.chmod(0o777)
        return [str(script), "--"]

    def replays(self, file, recorded, times, counts):
        about = info(self.tool, file, self.nowhere)
        if not about or not about["complete"]:
            return Result("the recording is not complete", again=f"{self.tool} info {file}")
        several = len(about["processes"]) > 1
        begun, made = time.monotonic(), 0
        for number in range(times):
            if number and self.is_spent(begun):
                break
            made += 1
            words = replay_words(self.tool, file, "--check")
            outcome = run_in_nowhere(words, self.limit, self.nowhere)
            if problem := replay_problem(recorded if self.prints else outcome, outcome, several, self.streams):
                return Result(f"replay {number + 1}: {problem}", again=bed.shell(words, self.nowhere),
                              replays=number)
        seen, counted_times = None, 0
        for number in range(counts):
            if number and self.is_spent(begun):
                break
            counted_times += 1
            words = replay_words(self.tool, file, "--count", "--json")
            outcome = run_in_nowhere(words, self.limit, self.nowhere)
            problem, found = counted(outcome)
            if not problem and seen not in (None, found):
                problem = f"counts differ: {seen} and {found}"
            if problem:
                return Result(f"counting replay {number + 1}: {problem}", again=bed.shell(words, self.nowhere),
                              replays=made)
            seen = found
        return Result(replays=made + counted_times, seconds=recorded.seconds)

    def is_spent(self, begun):
        return self.budget is not None and time.monotonic() - begun > self.budget


def replay_problem(recorded, replayed, several, streams):
    """What is wrong with a replay, or None."""
    if replayed.code != 0:
        return f"ended with {replayed.end}: {bed.last_line(replayed.stderr)}"
    for name in streams:
        expected, found = getattr(recorded, name), getattr(replayed, name)
        if name == "stderr":
            expected, found = without_own_lines(expected), without_own_lines(found)
        if several:
            expected, found = (b"".join(sorted(text.splitlines(True))) for text in (expected, found))
        if expected != found:
            return f"{name} {bed.first_change(expected, found)}"
    return None


def counted(outcome):
    """(problem, counts of every process) of `replay --count --json`."""
    if outcome.code != 0:
        return f"ended with {outcome.end}: {bed.last_line(outcome.stderr)}", None
    try:
        reports = json.loads(outcome.stdout)["result"]
        found = [(report["process"], report["counts"]["total"]) for report in reports]
    except (ValueError, KeyError, TypeError) as problem:
        return f"unusable counts: {problem!r}", None
    # One that is killed may have executed none.
    if not any(counts["instructions"] for _, counts in found):
        return "no instructions were counted", None
    return None, found


@contextlib.contextmanager
def moved_away(paths):
    there = [(path, path.with_name(path.name + ".away")) for path in paths if path.exists()]
    for path, away in there:
        shutil.rmtree(away, ignore_errors=True)  # of a run that was killed
        path.rename(away)
    try:
        yield
    finally:
        for path, away in there:
            away.rename(path)


class Tally:
    """Prints results as they come, and their sum."""

    def __init__(self, failures_only=False):
        self.failures_only = failures_only
        self.passed, self.failed, self.refused, self.replays = 0, [], [], 0

    def say(self, name, result):
        self.replays += result.replays
        if result.refused:
            self.refused.append(name)
            print(f"none  {name}: {result.refused}", flush=True)
        elif result.problem:
            self.failed.append(name)
            print(f"FAIL  {name}: {result.problem}\n      {result.again}", flush=True)
        else:
            self.passed += 1
            if not self.failures_only:
                print(f"ok    {name}: {result.replays} replays, recorded in {result.seconds:.1f} s", flush=True)

    def end(self):
        total = self.passed + len(self.failed)
        print(f"{self.passed} of {total} recordings replayed as recorded, {self.replays} replays in all; "
              f"{len(self.refused)} refused, {len(self.failed)} failed")
        return 1 if self.failed or not total else 0
