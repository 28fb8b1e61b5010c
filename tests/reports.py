"""Which lines of a program's source a report of `whydunit why --json` names, nearest first.

Shared by tests/why/score and tests/mutants: both ask at which rank the line stands that is to blame. Rank 0 is
the place of the end itself, 1 the first statement of the chain, or the first rule that was broken.
"""

import resource


def limit_cpu(seconds):
    """Ends the process that calls it when it has used so many seconds of the processor."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def in_short(finding, own):
    """The steps of a finding that the report tells: of a stack the innermost call, and four copies."""
    told = []
    for step in finding["evidence"]:
        role = step.get("role")
        most = 4 if role == "copied" else 1
        if role != "call" and own(step.get("place")) and [one.get("role") for one in told].count(role) < most:
            told.append(step)
    return told


def named(result, source):
    """The lines of a source (by its file's name) that the result of a report names: (rank, line)."""

    def own(place):
        return place and place.get("file", "").rsplit("/", 1)[-1] == source and place.get("line")

    places = [result.get("place")]
    threads = (result.get("hang") or {}).get("threads", [])
    places += [thread.get("place") for thread in threads]
    waits = [thread.get("waits") for thread in threads]
    opened = [(wait.get("input") or {}).get("opened") for wait in waits if isinstance(wait, dict)]
    places += [one.get("place") for one in opened if one]
    places += (result.get("recursion") or {}).get("calls", [])
    lines = [(0, place["line"]) for place in places if own(place)]
    for rank, finding in enumerate(result.get("broken", []), 1):
        places = [finding.get("place"), *[step["place"] for step in in_short(finding, own)]]
        lines += [(rank + at, place["line"]) for at, place in enumerate(places) if own(place)]
    for rank, shown in enumerate(result.get("shown", []), 1):
        place = result["statements"][shown["statement"]]["place"]
        if own(place):
            lines.append((rank, place["line"]))
    return lines


def rank(result, source, wanted):
    """The lowest rank of one of some lines; None if none is named."""
    return min((rank for rank, line in named(result, source) if line in wanted), default=None)
