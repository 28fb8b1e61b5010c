"""Faults of a single statement, made in the text of C programs.

Each kind looks at one line and says what it could become. That a line still compiles, and that the fault shows,
is found out by compiling and running.
"""

import re

KINDS = ("negated", "bound", "dropped", "variable", "check")

CONDITION = re.compile(r"\b(if|while) ?\(")
COMPARISON = re.compile(r"(?<![<>=!\-])(<=|>=|<|>)(?![<>=])")
UPDATE = re.compile(r"\s*(?:\*?[A-Za-z_][\w.\[\]]*(?:->[\w.\[\]]+)*\s*(?:[-+*/|&^]|<<|>>)?=(?!=)[^;{}]*"
                    r"|[A-Za-z_][\w.>\[\]-]*(?:\+\+|--)|(?:\+\+|--)[A-Za-z_][\w.>\[\]-]*);\s*(?:/\*.*)?$")
GUARD = re.compile(r"\b(return|goto|break|continue|exit|abort|error\w*|FATAL)\b")
NAME = re.compile(r"(?<![\w.>\"'])[a-z_]\w*(?!\w|\s*\(|->\w+\()")
KEYWORDS = set("if while for return else do switch case break continue goto sizeof int char long short unsigned"
               " signed void const static struct union enum float double default extern register".split())


def condition(line):
    """Where a condition stands in a line, if it does so as a whole."""
    found = CONDITION.search(line)
    if not found:
        return None
    depth = 1
    for at in range(found.end(), len(line)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if depth == 0:
            return found.end(), at
    return None


def negated(lines, at, draw):
    span = condition(lines[at])
    if span:
        line = lines[at]
        return f"{line[:span[0]]}!({line[span[0]:span[1]]}){line[span[1]:]}"
    return None


def bound(lines, at, draw):
    line = lines[at]
    span = condition(line)
    if not span and re.search(r"\bfor ?\(", line):
        span = (0, len(line))
    found = [m for m in COMPARISON.finditer(line) if span and span[0] <= m.start() < span[1]]
    if not found:
        return None
    chosen = draw.choice(found)
    other = chosen[0][0] if chosen[0].endswith("=") else chosen[0] + "="
    return line[:chosen.start()] + other + line[chosen.end():]


def dropped(lines, at, draw):
    return re.match(r"\s*", lines[at])[0] + ";" if UPDATE.match(lines[at]) else None


def variable(lines, at, draw):
    """Another name that is in use nearby in place of one."""
    line = lines[at]
    if not (UPDATE.match(line) or condition(line) or re.match(r"\s*return\b", line)):
        return None
    here = [m for m in NAME.finditer(line) if m[0] not in KEYWORDS]
    near = {name for text in lines[max(0, at - 12):at + 12] for name in NAME.findall(text)} - KEYWORDS
    if not here:
        return None
    chosen = draw.choice(here)
    others = sorted(near - {chosen[0]})
    if not others:
        return None
    return line[:chosen.start()] + draw.choice(others) + line[chosen.end():]


def check(lines, at, draw):
    """A guard that no longer guards."""
    span = condition(lines[at])
    behind = lines[at][span[1]:] + (lines[at + 1] if at + 1 < len(lines) else "") if span else ""
    if not span or not lines[at].lstrip().startswith("if") or not GUARD.search(behind):
        return None
    line = lines[at]
    return f"{line[:span[0]]}0 && ({line[span[0]:span[1]]}){line[span[1]:]}"


def made(kind, lines, at, draw):
    """What the line becomes, or None."""
    line = lines[at]
    if line.lstrip().startswith(("#", "//", "/*", "*")) or line.rstrip().endswith("\\"):
        return None
    return globals()[kind](lines, at, draw)
