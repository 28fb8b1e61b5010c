"""A bit of everything the standard library does, with printed digests."""

import collections
import csv
import decimal
import hashlib
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import zlib

corpus = pathlib.Path(sys.argv[1])
text = (corpus / "text").read_text()
words = collections.Counter(re.findall(r"[a-z]+", text[:600_000].lower()))
print(words.most_common(3), len(words))
print(hashlib.blake2b(text.encode()).hexdigest()[:16], zlib.crc32(zlib.compress(text.encode()[:300_000])))
with open(corpus / "rows.csv") as source:
    totals = collections.defaultdict(int)
    for number, name, amount, _ in csv.reader(source):
        totals[name[:1]] += int(amount)
print(sorted(totals.items())[:3])
data = json.loads((corpus / "data.json").read_text())
print(len(json.dumps(data, sort_keys=True)), max(data, key=lambda one: one["value"])["id"])
decimal.getcontext().prec = 60
print(decimal.Decimal(2).sqrt(), 3 ** 500 % 10 ** 20)
base = sqlite3.connect(":memory:")
base.execute("create table t(a, b)")
base.executemany("insert into t values(?, ?)", ((i, i * i % 97) for i in range(5000)))
print(base.execute("select b, count(*) from t group by b order by 2 desc, 1 limit 2").fetchall())
print(subprocess.run(["tr", "a-z", "A-Z"], input=b"child", capture_output=True).stdout)


def generator(n):
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        yield n


print(max(sum(1 for _ in generator(n)) for n in range(1, 2000)))
try:
    sys.setrecursionlimit(2000)
    (lambda f: f(f))(lambda f: f(f))
except RecursionError as error:
    print(type(error).__name__)
