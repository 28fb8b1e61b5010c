"""Makes the inputs that the ladder's jobs share, always the same, once.

text (2 MB of words), rows.csv, data.json, tree/ (a folder of small files), project/ (a C project
with a Makefile), image.ppm, and repo.sh, which makes a git repository with fixed dates.
"""

import itertools
import json
import pathlib
import random
import shutil

VERSION = "1"


def make(folder):
    stamp = folder / ".version"
    if stamp.exists() and stamp.read_text() == VERSION:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    dice = random.Random(3)
    words = vocabulary(dice)
    (folder / "text").write_text(sentences(dice, words, 2_000_000))
    (folder / "rows.csv").write_text(rows(dice, words, 20_000))
    (folder / "data.json").write_text(json.dumps(records(dice, words, 4_000)))
    tree(dice, words, folder / "tree")
    project(folder / "project")
    image(dice, folder / "image.ppm")
    (folder / "repo.sh").write_text(REPOSITORY)
    stamp.write_text(VERSION)


def vocabulary(dice):
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    return ["".join(dice.choices(letters, range(26, 0, -1), k=dice.randint(2, 9))) for _ in range(3000)]


def sentences(dice, words, size):
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    lines, written = [], 0
    while written < size:
        lines.append(" ".join(dice.choices(words, cum_weights=weights, k=dice.randint(4, 14))).capitalize() + ".\n")
        written += len(lines[-1])
    return "".join(lines)


def rows(dice, words, count):
    return "".join(f"{i},{dice.choice(words)},{dice.randrange(1000)},{dice.random():.4f}\n" for i in range(count))


def records(dice, words, count):
    return [{"id": i, "name": dice.choice(words), "tags": dice.sample(words, 3), "value": dice.randrange(10**6)}
            for i in range(count)]


def tree(dice, words, folder):
    for i in range(120):
        path = folder / f"d{i % 7}" / f"e{i % 3}" / f"file{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sentences(dice, words, dice.randrange(100, 4000)))
    (folder / "link").symlink_to("d0")


def image(dice, path):
    """A 200 x 150 picture with gradients and noise."""
    pixels = bytearray(b"P6 200 150 255\n")
    for y in range(150):
        for x in range(200):
            pixels += bytes(((x * 255) // 200, (y * 255) // 150, (x * y + dice.randrange(32)) % 256))
    path.write_bytes(pixels)


def project(folder):
    """A library, a parser and a program over it; `make check` runs it."""
    folder.mkdir()
    modules = [f"mod{i}" for i in range(12)]
    for i, name in enumerate(modules):
        (folder / f"{name}.h").write_text(f"#pragma once\nlong {name}(long x);\n")
        uses = f"mod{i - 1}(x / 2 + {i})" if i else "x"
        (folder / f"{name}.c").write_text(
            f'#include "{name}.h"\n' + (f'#include "mod{i - 1}.h"\n' if i else "") +
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
            f"static int by(const void *a, const void *b) {{ return *(const int *)a - *(const int *)b; }}\n"
            f"long {name}(long x)\n{{\n    int data[64];\n"
            f"    for (int i = 0; i < 64; i++) data[i] = (int)((x + i * {7919 + i}) % 997);\n"
            f"    qsort(data, 64, sizeof *data, by);\n    long sum = {uses};\n"
            f"    for (int i = 0; i < 64; i += {i % 5 + 1}) sum = sum * 31 + data[i];\n    return sum;\n}}\n")
    (folder / "main.c").write_text(
        '#include "mod11.h"\n#include <stdio.h>\nint main(void)\n{\n'
        "    long sum = 0;\n    for (long i = 0; i < 200; i++) sum ^= mod11(i);\n"
        '    printf("%ld\\n", sum);\n    return 0;\n}\n')
    objects = " ".join(f"{name}.o" for name in modules)
    (folder / "Makefile").write_text(
        f"CFLAGS = -O2 -Wall\nall: program\nprogram: main.o libmods.a\n\t$(CC) $^ -o $@\n"
        f"libmods.a: {objects}\n\tar rcsD $@ $^\n%.o: %.c\n\t$(CC) $(CFLAGS) -c $< -o $@\n"
        "check: program\n\t./program\nclean:\n\trm -f *.o *.a program\n")


REPOSITORY = r"""
# Makes a git repository in $1: 40 commits on two branches with a merge and tags, fixed dates.
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init -q -b main "$1"; cd "$1"
for i in $(seq 1 40); do
    export GIT_AUTHOR_DATE="$((1600000000 + i * 3600)) +0000" GIT_COMMITTER_DATE="$((1600000000 + i * 3600)) +0000"
    if [ "$i" = 20 ]; then git checkout -q -b side; fi
    if [ "$i" = 30 ]; then git checkout -q main; fi
    mkdir -p "dir$((i % 4))"
    sed -n "$((i * 50)),$((i * 50 + 80))p" "$CORPUS/text" > "dir$((i % 4))/file$((i % 9)).txt"
    sed -n "$((i * 7)),$((i * 7 + 20))p" "$CORPUS/text" >> "log$((i >= 20 && i < 30)).txt"
    git add -A; git commit -q -m "Change number $i"
    if [ $((i % 10)) = 0 ]; then git tag "v$i"; fi
done
git merge -q side -m "Merge side"
"""
