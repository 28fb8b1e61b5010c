"""The programs that get faults: how they are built from Debian's sources, and the job they do."""

import dataclasses
import json
import pathlib
import subprocess


@dataclasses.dataclass(frozen=True)
class Subject:
    """`prepare` makes what is generated; `sources` are compiled with `flags`; `faulty` may get faults."""

    name: str
    package: str
    prepare: str
    sources: str
    flags: str
    libraries: str
    faulty: str
    arguments: tuple
    inputs: dict
    stdin: str = ""


AWK_JOB = """BEGIN { FS = "," } { n[$2] += $1; s = s substr($3, 2, 3); if ($1 % 7 == 0) odd++ }
END { for (i = 1; i <= 5; i++) printf "%s %d\\n", "k" i, n["k" i]; print toupper(s); print odd, length(s)
gsub(/a+/, "<&>", s); print s; print split("x:y:zz", parts, ":"), parts[3], index(s, "<a"), sprintf("%5.2f|%-4s|", 3.14159, "ab") }
"""
ROWS = "".join(f"{i * 37 % 101},k{i % 5 + 1},word{i}a\n" for i in range(40))
LUA_JOB = """local t = {}
for i = 1, 60 do t[#t + 1] = (i * 37) % 101 end
table.sort(t, function(a, b) return a > b end)
print(t[1], t[30], t[60], table.concat(t, ",", 1, 8))
local words = {}
for w in ("the quick brown fox jumps over the lazy dog the end"):gmatch("%a+") do words[w] = (words[w] or 0) + 1 end
print(words.the, words.fox, words.cat)
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(fib(12), string.format("%5.2f|%-6s|%03d", 3.14159, "ab", 7), ("abc"):rep(3, "-"))
local ok, message = pcall(function() local x = nil; return x.y end)
print(ok, message)
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end)
print(co(), co(), co())
print(("x=1, y=22"):gsub("(%w+)=(%w+)", "%2=%1"), 7 // 2, 7 % -3, 2^10, 1e15, "10" + 5)
setmetatable(t, { __index = function(_, k) return k * 2 end })
print(t[1000], #t, select("#", 1, nil, 3), math.max(3, 9, 2))
"""
SCHEME_JOB = """(define (fact n) (if (< n 2) 1 (* n (fact (- n 1)))))
(define (insert x l) (cond ((null? l) (list x)) ((< x (car l)) (cons x l)) (else (cons (car l) (insert x (cdr l))))))
(define (sort l) (if (null? l) l (insert (car l) (sort (cdr l)))))
(display (fact 10)) (newline)
(write (sort '(5 3 8 1 9 2 7))) (newline)
(let loop ((i 0)) (if (< i 5) (begin (display (* i i)) (display " ") (loop (+ i 1))))) (newline)
(display (string-append "abc" (number->string 42) (symbol->string 'x))) (newline)
(write (vector 1 2 "three" #\\4)) (newline)
(display (call/cc (lambda (k) (+ 1 (k 99))))) (newline)
(write `(1 ,(+ 1 1) ,@(list 3 4))) (newline)
(display (exact->inexact (/ 22 7))) (newline)
(write (map (lambda (x) (* x x)) '(1 2 3))) (newline)
"""

BC_JOB = """define f(n) {
  if (n < 2) return (n);
  return (f(n-1) + f(n-2));
}
define void p(n) {
  auto i, a[]
  for (i = 0; i < n; i++) a[i] = i * i % 7
  while (i > 0) { i -= 1; print a[i], " " }
  print "\\n"
}
2^100
p(8)
scale = 20
1 / 3
f(10)
sqrt(2)
obase = 16
255 * 255
obase = 10
ibase = 2
101101
ibase = A
x = 17; y = 5
x % y; x ^ y; -x / y; length(12345.678); scale(1.2345)
(x > y) + (x == 17) * 2 + !y
if (x >= 17 && y != 4) "yes
" else "no
"
"""

SUBJECTS = [
    Subject("lua", "lua5.4", """echo '#define DEB_HOST_MULTIARCH "."' > src/lua5.4-deb-multiarch.h""",
            "src/*.c !src/luac.c", "-DLUA_USE_LINUX", "-lm -ldl -Wl,-E",
            "src/l*.c", ("job.lua",), {"job.lua": LUA_JOB}),
    Subject("awk", "original-awk",
            "bison -y -d -b awkgram awkgram.y && gcc -w -o maketab maketab.c && ./maketab awkgram.tab.h > proctab.c",
            "awkgram.tab.c b.c main.c parse.c proctab.c tran.c lib.c run.c lex.c", "", "-lm",
            "b.c parse.c tran.c lib.c run.c lex.c", ("-f", "job.awk", "rows"), {"job.awk": AWK_JOB, "rows": ROWS}),
    Subject("jq", "jq",
            r"""sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' src/builtin.jq > src/builtin.inc
            echo '#define JQ_VERSION "1.6"' > src/version.h""",
            "src/*.c !src/inject_errors.c", "-I. -D_GNU_SOURCE -DIEEE_8087 -pthread", "-lm -lpthread",
            "src/jv.c src/jv_print.c src/jv_parse.c src/execute.c src/builtin.c src/jv_aux.c src/bytecode.c",
            ("-c", "(map(select(.n > 3)) | group_by(.k) | map({k: .[0].k, s: (map(.n) | add), t: (map(.w) | join(\"-\"))})),"
             " (.[2:5] | length), (.[0] | to_entries | map(.key))", "data.json"),
            {"data.json": "[" + ",".join(f'{{"k":"g{i % 3}","n":{i * 7 % 11},"w":"w\\u00e9{i}","f":{i}.5e1}}'
                                         for i in range(12)) + "]"}),
    Subject("bzip2", "bzip2", "", "blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c bzip2.c",
            "-D_FILE_OFFSET_BITS=64", "", "blocksort.c huffman.c compress.c bzlib.c bzip2.c",
            ("-kc", "rows"), {"rows": ROWS}),
    Subject("compress", "ncompress", "", "compress42.c", "-DUSERMEM=800000 -DDIRENT=1 -DREGISTERS=3", "",
            "compress42.c", ("-c", "rows"), {"rows": ROWS * 4}),
    Subject("scheme", "tinyscheme", "", "scheme.c dynload.c", "-DUSE_STRLWR=1 -DSUN_DL=1 -DUSE_DL=1 -DUSE_MATH=1 -DSTANDALONE=1",
            "-ldl -lm", "scheme.c", ("job.scm",), {"job.scm": SCHEME_JOB}),
    # These two came last: nothing was ever looked at in them to make `why` better.
    Subject("bc", "bc", "find . -exec touch -r configure {} + && ./configure && echo '{ \"\", 0 };' > bc/libmath.h",
            "bc/*.c lib/getopt.c lib/getopt1.c lib/number.c", "-DHAVE_CONFIG_H -I. -Ih -Ibc", "",
            "bc/*.c lib/number.c !bc/bc.c !bc/warranty.c", ("-q", "job.bc"), {"job.bc": BC_JOB}),
    Subject("mawk", "mawk", "find . -exec touch -r configure {} + && ./configure && gcc -I. makescan.c -o makescan && ./makescan > scancode.c",
            "*.c !makescan.c !fpe_check.c !rexp*.c !regexp_system.c", "-I. -DHAVE_CONFIG_H", "-lm",
            "*.c !parse.c !scancode.c !rexp*.c !regexp_system.c", ("-f", "job.awk", "rows"), {"job.awk": AWK_JOB, "rows": ROWS}),
]


def files(folder, patterns):
    """Files by patterns; those after an exclamation mark are left out."""
    chosen, left_out = [], set()
    for pattern in patterns.split():
        (left_out.update if pattern[0] == "!" else chosen.extend)(sorted(folder.glob(pattern.lstrip("!"))))
    return [path for path in chosen if path not in left_out]


def lay_out(subject, folder):
    """Writes what a job reads; a faulty program may have removed it."""
    for name, text in subject.inputs.items():
        (folder / name).write_text(text)


class Build:
    """A subject in a folder of its own, with one object file for each source."""

    def __init__(self, subject, sources, folder, level):
        self.subject, self.folder, self.level = subject, folder, level
        subprocess.run(["cp", "-r", f"{sources}/.", folder], check=True)
        if subject.prepare:
            self.shell(subject.prepare)
        lay_out(subject, folder)
        self.sources = files(folder, subject.sources)
        self.faulty = files(folder, subject.faulty)

    def shell(self, command):
        subprocess.run(["sh", "-ec", command], cwd=self.folder, check=True, capture_output=True)

    def compile(self, source, to, flags=""):
        """Whether a source could be compiled."""
        command = f"gcc -g {self.level} -w {self.subject.flags} {flags} -c -o {to} {source}"
        return subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True).returncode == 0

    def link(self, objects, to, flags=""):
        words = " ".join(str(path) for path in objects)
        self.shell(f"gcc {flags} -o {to} {words} {self.subject.libraries}")

    def program(self, to, flags="", instead=None):
        """Builds a program; `instead` gives objects for some sources."""
        objects = []
        for source in self.sources:
            made = pathlib.Path(f"{source}{flags.replace(' ', '')}.o")
            if instead and source in instead:
                made = instead[source]
            elif not made.exists() and not self.compile(source, made, flags):
                raise RuntimeError(f"{source} cannot be compiled")
            objects.append(made)
        self.link(objects, to, flags)

    def covered(self):
        """The lines that the job executes, by file."""
        program = self.folder / "covered"
        self.program(program, "--coverage")
        self.run(program)
        lines = {}
        for source in self.faulty:
            note = f"{source}--coverage"
            done = subprocess.run(["gcov", "--json-format", "--stdout", note + ".gcda"], cwd=self.folder, capture_output=True)
            for text in done.stdout.splitlines():
                for entry in json.loads(text)["files"]:
                    if pathlib.Path(entry["file"]).name == source.name:
                        lines.setdefault(source, set()).update(
                            line["line_number"] for line in entry["lines"] if line["count"])
        return lines

    def run(self, program, seconds=5):
        """Exit code and output of the job; None for the code where it does not end."""
        lay_out(self.subject, self.folder)
        limits = "ulimit -v 4000000; ulimit -f 20000; ulimit -c 0; exec \"$@\""
        try:
            done = subprocess.run(["bash", "-c", limits, "x", program, *self.subject.arguments], cwd=self.folder,
                                  input=self.subject.stdin.encode(), capture_output=True, timeout=seconds)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            return None, late.stdout or b""
