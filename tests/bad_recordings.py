"""Recordings that cannot be used, or not to their end: made from a good one and given to `info` and
`replay`.

What is no recording of ours is refused in one line with exit 2. What is cut or damaged is refused or
used as far as it is good; then the tool must say so, and what it shows must be what the whole
recording shows up to there. `tests/bad-input` runs this.
"""

import os
import pathlib
import random
import struct
import subprocess
import zlib

import bed
import recordings

HEADER, CHUNK = 24, 48
LIMIT = 60


def seal(data, start, length):
    """Puts the right checksum at the end of a structure."""
    struct.pack_into("<I", data, start + length - 4, zlib.crc32(bytes(data[start:start + length - 4])))


def with_version(good, version):
    data = bytearray(good)
    struct.pack_into("<I", data, 12, version)
    seal(data, 0, HEADER)
    return bytes(data)


def with_feature(good, name):
    """The first feature that the recording needs becomes one that no processor has. The length stays,
    so only the checksums of the chunk and of the copy of its header in the index are made anew."""
    data = bytearray(good)
    payload = HEADER + CHUNK
    length = struct.unpack_from("<I", data, HEADER + 8)[0]
    at = data.index(b'"features":["', payload, payload + length) + len(b'"features":["')
    end = data.index(b'"', at)
    data[at:end] = name[:1] * (end - at)
    before = bytes(data[HEADER:payload])
    struct.pack_into("<I", data, HEADER + 36, zlib.crc32(bytes(data[payload:payload + length])))
    seal(data, HEADER, CHUNK)
    copy = data.rindex(before)
    data[copy:copy + CHUNK] = data[HEADER:payload]
    trailer = len(data) - 32
    index, = struct.unpack_from("<Q", data, trailer + 8)
    struct.pack_into("<I", data, index + 36, zlib.crc32(bytes(data[index + CHUNK:trailer])))
    seal(data, index, CHUNK)
    return bytes(data)


def refusals(good):
    """(name, bytes, words that the refusal must have)."""
    yield "an empty file", b"", "is empty"
    yield "a text file", b"hello, world\n" * 20, "is not a recording"
    yield "a program", pathlib.Path("/bin/true").read_bytes(), "is not a recording"
    yield "a newer version", with_version(good, 2), "version 2"
    yield "text after the first bytes", good[:8] + b"hello" * 30, "is damaged"
    other = bytearray(good)
    other[8:12] = reversed(other[8:12])
    struct.pack_into(">I", other, 20, zlib.crc32(bytes(other[:20])))
    yield "the other byte order", bytes(other), "byte order"


def copies(good):
    """(name, bytes) of damaged copies."""
    dice = random.Random(9)
    for length in sorted({*range(0, min(len(good), 200), 23), *range(0, len(good), max(1000, len(good) // 120)),
                          len(good) - 1, len(good) - 32, len(good) - 33}):
        yield f"cut-{length}", good[:length]
    for number in range(120):
        data = bytearray(good)
        for _ in range(dice.choice([1, 1, 1, 2, 5])):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        yield f"flipped-{number}", bytes(data)


def one_line(outcome, words):
    lines = outcome.stderr.decode(errors="replace").splitlines()
    if outcome.code != 2:
        return f"ended with {outcome.end}, not exit 2: {bed.last_line(outcome.stderr)}"
    if len(lines) != 1 or not lines[0].startswith("whydunit: "):
        return f"stderr is not one line of ours: {lines[:3]}"
    if words not in lines[0]:
        return f"it does not say {words!r}: {lines[0]}"
    return "something on stdout" if outcome.stdout else None


def info_problem(outcome):
    if outcome.code == 2:
        return one_line(outcome, "")
    if outcome.code != 1 or b"state        complete" in outcome.stdout:
        return f"ended with {outcome.end} and does not say that it is damaged"
    return None


def replay_problem(outcome, whole):
    said_so = outcome.code == 0 and b"is not complete" in outcome.stderr
    if outcome.code not in (1, 2, 3) and not said_so:
        return f"ended with {outcome.end}: {bed.last_line(outcome.stderr)}"
    if not any(line.startswith(b"whydunit: ") for line in outcome.stderr.splitlines()):
        return "it does not say what is wrong"
    if outcome.is_our_fault():
        return f"a fault of our own: {bed.last_line(outcome.stderr)}"
    return None if whole.startswith(outcome.stdout) else "it shows what was never written"


def check(tool, folder, tally, user):
    """Everything; `user` is another user, (uid, gid), or None."""
    folder = pathlib.Path(folder) / "recordings"
    folder.mkdir(mode=0o755)
    good_file, file = folder / "good", folder / "file"
    guest = ["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo line $i; done"]
    made = bed.run([*recordings.record_words(tool, good_file), *guest], folder, recordings.ENV, LIMIT)
    tally.say("record for the rest", None if made.code == 0 else f"{made.end}: {bed.last_line(made.stderr)}")
    if made.code != 0:
        return
    good = good_file.read_bytes()

    def run(words, who=None):
        return bed.shell(words, folder), bed.run(words, folder, recordings.ENV, LIMIT, user=who)

    commands = {"info": [str(tool), "info", str(file)], "replay": recordings.replay_words(tool, file, "--check")}
    for name, data, words in refusals(good):
        file.write_bytes(data)
        for verb, command in commands.items():
            again, outcome = run(command)
            tally.say(f"{verb}: {name}", one_line(outcome, words), again)
    file.write_bytes(with_feature(good, b"zz"))
    again, outcome = run(commands["replay"])
    tally.say("replay: a processor that lacks a feature", one_line(outcome, "zz"), again)
    if user:
        file.write_bytes(good)
        file.chmod(0o600)
        for verb, command in commands.items():
            again, outcome = run(command, user)
            tally.say(f"{verb}: another user's", one_line(outcome, f"belongs to user {os.geteuid()}"), again)
    for path in ("/nonexistent", str(folder)):
        again, outcome = run([str(tool), "info", path])
        tally.say(f"info: {path}", one_line(outcome, ""), again)
    existing = run([word for word in recordings.record_words(tool, good_file) if word != "--force"] + guest)
    tally.say("record over a file that is there", one_line(existing[1], "is there already"), existing[0])
    for name, data in copies(good):
        file.write_bytes(data)
        problem = info_problem(run(commands["info"])[1]) or replay_problem(run(commands["replay"])[1], made.stdout)
        kept = bed.ROOT / f"target/bad-recording-{name}"
        if problem:
            kept.write_bytes(data)
        tally.say(f"recording {name}", problem, bed.shell(recordings.replay_words(tool, kept, "--check"), "/"))
    subprocess.run(["rm", "-rf", str(folder)], check=True)
