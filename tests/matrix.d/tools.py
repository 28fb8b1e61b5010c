"""Who looks for the faults: how each tool is run on a program, and what its report says.

A report is judged alike for all: it must be of the fault's class, and the function `act` must be among
the calls that led to it. The verdict is one of `FOUND`, `OTHER` (another class there), `CRASH` (told as a
fatal signal where the program survives a run by itself), `ELSEWHERE` and `NOTHING`.
"""

import json
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree

FOUND, OTHER, CRASH, ELSEWHERE, NOTHING = "found", "other", "crash", "elsewhere", "nothing"
LIMIT = 120

SPATIAL, TEMPORAL, UNWRITTEN = "spatial", "temporal", "unwritten"
CLASS = {"f": TEMPORAL, "r": TEMPORAL, "s": TEMPORAL, "u": UNWRITTEN}


def run(command, folder, environment=None):
    """Output on standard error, whatever became of the program; None where it took too long."""
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=LIMIT, env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        return None
    return done.stderr.decode(errors="replace")


def judge(reports, fault, dies):
    """The best verdict on reports, each a set of classes with its functions. Where the program dies by
    itself its fatal signal is the fault."""
    verdicts = set()
    for classes, functions in reports:
        wanted = {CLASS.get(fault, SPATIAL)} | ({"signal"} if dies else set())
        here = any(name.split(".")[0] == "act" for name in functions)
        if here and wanted & classes:
            verdicts.add(FOUND)
        elif "signal" in classes:
            verdicts.add(CRASH)
        else:
            verdicts.add(OTHER if here else ELSEWHERE)
    return next((v for v in (FOUND, OTHER, CRASH, ELSEWHERE) if v in verdicts), NOTHING)


class Whydunit:
    """`whydunit run` as it is typed."""

    name = "whydunit"
    flags = ()

    def __init__(self, tool, options=()):
        self.tool, self.options = tool, options

    def reports(self, program, fault, folder):
        with tempfile.NamedTemporaryFile(suffix=".json") as answer:
            told = run([self.tool, "run", *self.options, "--json", "-o", answer.name, "--", program, fault], folder)
            if told is None:
                return None
            text = open(answer.name).read()
        if not text:
            raise RuntimeError(f"{program} {fault}: no answer: {told}")
        return [(self.classes(finding), self.functions(finding)) for finding in json.loads(text)["findings"]]

    def text(self, program, fault, folder):
        """The report as people read it."""
        with tempfile.NamedTemporaryFile(suffix=".txt") as answer:
            run([self.tool, "run", *self.options, "-o", answer.name, "--", program, fault], folder)
            return open(answer.name).read()

    @staticmethod
    def classes(finding):
        kind = finding["kind"]
        if re.search("overflow|underflow|bounds|outside", kind):
            return {SPATIAL}
        if re.search("dangling|after|stale", kind):
            return {TEMPORAL}
        if re.search("uninit|unwritten", kind):
            return {UNWRITTEN}
        if kind == "unaddressable-buffer":
            # As of memcheck: whether it is too far or too late only who reads on knows.
            return {SPATIAL, TEMPORAL}
        return {"signal"} if kind == "fatal-signal" else {kind}

    @staticmethod
    def functions(finding):
        places = [finding.get("place")] + [step.get("place") for step in finding["evidence"]
                                           if re.match(r"#\d", step["text"])]
        return [place["function"] for place in places if place and place.get("function")]


class Memcheck:
    """valgrind, with nothing about leaks."""

    name = "memcheck"
    flags = ()

    def reports(self, program, fault, folder):
        with tempfile.NamedTemporaryFile(suffix=".xml") as answer:
            command = ["valgrind", "-q", "--leak-check=no", "--xml=yes", f"--xml-file={answer.name}", program, fault]
            if run(command, folder) is None:
                return None
            text = open(answer.name).read()
        root = xml.etree.ElementTree.fromstring(text.split("</valgrindoutput>")[0] + "</valgrindoutput>")
        return [(self.classes(error), [frame.text for frame in error.find("stack").iter("fn")])
                for error in root.iter("error") if not error.find("kind").text.startswith("Leak_")]

    @staticmethod
    def classes(error):
        kind = error.find("kind").text
        words = " ".join(node.text or "" for node in error.iter() if node.tag in ("what", "auxwhat", "text"))
        words = words.replace("(recently) free'd", "")
        if kind.startswith("Uninit") or "uninitialised" in words:
            return {UNWRITTEN}
        if kind in ("InvalidRead", "InvalidWrite", "SyscallParam", "InvalidMem"):
            # An address below the stack pointer is a local variable that is gone, or one not made yet.
            return {TEMPORAL} if "free'd" in words else {SPATIAL, TEMPORAL}
        return {kind}


class Sanitizer:
    """A build with a sanitizer, which ends at its first report."""

    def __init__(self, name, flag, pattern):
        self.name, self.flags, self.pattern = name, ("-fsanitize=" + flag, "-fno-omit-frame-pointer"), pattern

    def reports(self, program, fault, folder):
        told = run([program, fault], folder, {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1"})
        if told is None:
            return None
        kind = re.search(self.pattern, told)
        if not kind:
            return []
        stack = told[kind.start():].split("\n\n")[0]
        return [(self.classes(kind[1]), re.findall(r"#\d+ 0x[0-9a-f]+ in (\S+)", stack))]

    @staticmethod
    def classes(kind):
        if "after" in kind:
            return {TEMPORAL}
        if "uninit" in kind:
            return {UNWRITTEN}
        return {"signal"} if kind in ("SEGV", "BUS") else {SPATIAL}


PEERS = [
    Memcheck(),
    Sanitizer("ASan", "address", r"AddressSanitizer:? (?:CHECK failed|(\S+))"),
    Sanitizer("MSan", "memory", r"MemorySanitizer: (\S+)"),
]
