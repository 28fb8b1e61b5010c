"""More jobs of the ladder: small tools as people use them, most of them in pipes, and the modules of interpreters."""

import functools

import jobs

# Not for `--quick`, which has jobs of each kind already.
guest, script = (functools.partial(make, slow=True) for make in (jobs.guest, jobs.script))

# ---- coreutils and text ------------------------------------------------------------------------
for name, text in {
    "base32": "base32 $CORPUS/image.ppm | head -c 100000 | base32 -d -i | cksum",
    "base64": "base64 -w 60 $CORPUS/image.ppm | base64 -d | cmp - $CORPUS/image.ppm && echo same",
    "b2sum": "b2sum < $CORPUS/text; md5sum < $CORPUS/text; sha1sum < $CORPUS/text; sha224sum < $CORPUS/text",
    "comm-join": "sort -u $CORPUS/rows.csv > a; head -1000 a | tail -700 > b; comm -12 a b | wc -l; join -t, a b | cksum",
    "csplit-split": "seq 1000 > s; csplit -s s 100 200 '{3}'; split -l 77 -d s part; cat part* | cmp - s; ls | wc -l",
    "cut-paste": "cut -d, -f1 $CORPUS/rows.csv | paste -d: - - - | tail -3",
    "expand-fold": "unexpand -a $CORPUS/text | expand -t 3 | fold -s -w 40 | cksum",
    "fmt-pr": "fmt -w 50 $CORPUS/text | pr -3 -t -w 120 -l 50 | cksum",
    "install-ln": "install -m 640 $CORPUS/text a; ln a b; ln -s b c; stat -c '%a %h %F' a b c; readlink -f c | sed 's,.*/,,'",
    "nl-tac-rev": "nl -ba $CORPUS/text | tac | rev | cksum",
    "numfmt": "seq 1 5000 9000000 | numfmt --to=iec | cksum",
    "od-hex": "od -A x -t x1z -v $CORPUS/image.ppm | cksum",
    "printf-echo": "for i in $(seq 300); do printf '%05d %x %e %q\\n' $i $i $i \"a $i\"; done | cksum",
    "ptx-tsort": "head -200 $CORPUS/text | ptx -w 60 | cksum; seq 100 | awk '{print $1, $1+1}' | tsort | tail -1",
    "shuf-random": "shuf --random-source=$CORPUS/image.ppm $CORPUS/rows.csv | cksum",
    "sort-keys": "sort -t, -k2,2n -k1,1r -s $CORPUS/rows.csv | cksum; sort -R --random-source=$CORPUS/image.ppm $CORPUS/rows.csv | cksum",
    "tee-fifo": "mkfifo p; (cat p | cksum) & tee p < $CORPUS/text | wc -c; wait",
    "test-expr": "i=0; while [ $i -lt 200 ]; do i=$(expr $i + 1); test $i -ne 7 || echo seven; done; echo $i",
    "tr-uniq": "tr -cs A-Za-z '\\n' < $CORPUS/text | tr A-Z a-z | sort | uniq -c | sort -rn | head -5",
    "truncate-fallocate": "truncate -s 1M f; fallocate -l 100K g; dd if=/dev/zero of=f bs=1K seek=10 count=3 conv=notrunc status=none; cksum f g",
    "date-many": "for i in $(seq 0 40); do date -u -d \"2020-01-01 + $((i * 9)) days\" +%G-%V-%u; done | cksum",
    "env-nice": "env -i A=1 nice -n 3 sh -c 'nice; echo $A'; id -u; hostid > /dev/null; nproc --ignore=10000",
    "timeout-signals": "timeout -s INT 0.2 sleep 5; echo $?; timeout --preserve-status 0.2 sh -c 'trap \"exit 9\" TERM; sleep 3 & wait'; echo $?",
}.items():
    script(f"core-{name}", text, "coreutils")

# ---- other small tools -------------------------------------------------------------------------
script("ed", "printf '1,5p\\n$s/.*/last/\\nw out\\nq\\n' | ed -s $CORPUS/text", "ed", files="out")
script("patch-reverse", "cp $CORPUS/text a; sed 's/e/E/' a > b; diff -u a b > d; patch -s a d; cmp a b; patch -s -R a d; cmp a $CORPUS/text; echo $?", "patch diffutils")
script("xxd-back", "xxd $CORPUS/image.ppm | xxd -r | cmp - $CORPUS/image.ppm; echo $?", "xxd")
script("xmllint", "(echo '<a>'; seq -f '<b n=\"%g\">t</b>' 2000; echo '</a>') > x.xml; xmllint --xpath 'count(//b[@n>100])' x.xml; xmllint --format x.xml | cksum", "libxml2-utils")
script("file-kinds", "file -b $CORPUS/text /bin/true $CORPUS/image.ppm | sed 's/BuildID[^,]*,//'", "file")
script("column-hexdump", "head -500 $CORPUS/rows.csv | column -s, -t | cksum; hexdump -C $CORPUS/image.ppm | cksum", "bsdextrautils")
script("ctags", "printf 'int f(int a) { return a; }\\nstruct s { int m; };\\n' > a.c; ctags -f - a.c | grep -v '^!' | cut -f1", "universal-ctags")
script("unzip", "zip -q -r z.zip $CORPUS/tree/d0; unzip -q -o z.zip; unzip -l z.zip | tail -1 | awk '{print $2}'", "zip unzip")
script("socat-pipe", "socat -u FILE:$CORPUS/text EXEC:cksum", "socat")
script("socat-unix", "socat UNIX-LISTEN:s,fork EXEC:'tr a-z A-Z' & p=$!; for i in $(seq 100); do [ -S s ] && break; sleep 0.1; done; for i in 1 2 3; do echo hello $i | socat -t2 - UNIX-CONNECT:s; done; kill $p; wait", "socat")
script("tmux", "tmux -L ladder -f /dev/null new-session -d -x 80 -y 20 'echo inside > out; sleep 0.2'; for i in $(seq 100); do [ -s out ] && break; sleep 0.1; done; cat out; tmux -L ladder kill-server 2>/dev/null; true", "tmux", stderr=False)
script("clang", "printf 'int main(int c, char **v) { int s = 0; for (int i = 0; i < 99; i++) s += i * c; return s & 7; }' > a.c; clang -O2 a.c -o a; ./a; echo $?", "clang")
script("flex-only", "printf '%%%%\\n[0-9]+ printf(\"N\");\\n%%%%\\nint yywrap(void) { return 1; }\\nint main(void) { return yylex(); }\\n' > l.l; flex l.l; gcc lex.yy.c -o l; echo a12b345 | ./l", "flex gcc")

# ---- modules of interpreters -------------------------------------------------------------------
for name, text in {
    "asyncio": "import asyncio\nasync def f(i):\n    await asyncio.sleep(0.001 * (i % 5)); return i\nasync def m():\n    print(sum(await asyncio.gather(*[f(i) for i in range(300)])))\nasyncio.run(m())",
    "concurrent": "from concurrent.futures import ThreadPoolExecutor, ProcessPoolExecutor\nwith ThreadPoolExecutor(4) as p: print(sum(p.map(abs, range(-500, 500))))\nwith ProcessPoolExecutor(3) as p: print(sum(p.map(abs, range(-50, 50))))",
    "csv-sqlite3": "import sqlite3\nc = sqlite3.connect(\":memory:\")\nc.execute(\"create table t(a, b)\")\nc.executemany(\"insert into t values(?, ?)\", [(i, i * i % 97) for i in range(5000)])\nprint(c.execute(\"select b, count(*) from t group by b order by 2, 1\").fetchall()[:5])",
    "ctypes": "import ctypes\nl = ctypes.CDLL(None)\nF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))\na = (ctypes.c_int * 200)(*[i * 37 % 199 for i in range(200)])\nl.qsort(a, 200, 4, F(lambda x, y: x[0] - y[0]))\nprint(list(a)[:9])",
    "decimal-fractions": "from decimal import *\nfrom fractions import Fraction\ngetcontext().prec = 200\nprint(Decimal(2).sqrt(), sum(Fraction(1, i) for i in range(1, 200)))",
    "email-html": "import email, html.parser\nm = email.message_from_string(\"Subject: x\\n\\n\" + \"line\\n\" * 500)\nprint(m[\"subject\"], len(m.get_payload()))",
    "hashlib": "import hashlib\nfor n in sorted(hashlib.algorithms_guaranteed):\n    h = hashlib.new(n, b\"x\" * 100000)\n    print(n, h.hexdigest(16) if \"shake\" in n else h.hexdigest())",
    "pickle-copy": "import pickle, copy\nd = {i: [i, str(i), {i}] for i in range(2000)}\nprint(pickle.loads(pickle.dumps(d)) == copy.deepcopy(d))",
    "random-statistics": "import random, statistics\nr = random.Random(7)\nx = [r.gauss(0, 1) for _ in range(20000)]\nprint(statistics.fmean(x), statistics.pstdev(x), statistics.median(x))",
    "socketserver": "import socketserver, threading, socket\nclass H(socketserver.StreamRequestHandler):\n    def handle(self): self.wfile.write(self.rfile.readline().upper())\ns = socketserver.ThreadingTCPServer((\"127.0.0.1\", 0), H)\nthreading.Thread(target=s.serve_forever, daemon=True).start()\nfor i in range(20):\n    c = socket.create_connection(s.server_address); c.sendall(b\"hello %d\\n\" % i); print(c.recv(99)); c.close()\ns.shutdown()",
    "tarfile-lzma": "import tarfile, io, lzma\nb = io.BytesIO()\nt = tarfile.open(fileobj=b, mode=\"w:xz\")\nfor i in range(50):\n    n = tarfile.TarInfo(str(i)); n.size = 1000; t.addfile(n, io.BytesIO(bytes([i]) * 1000))\nt.close(); b.seek(0)\nprint(len(tarfile.open(fileobj=b).getnames()), lzma.decompress(b.getvalue())[:5])",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(sum(range(1000)), 499500)\n    def test_b(self):\n        with self.assertRaises(ZeroDivisionError): 1 / 0\nprint(unittest.TextTestRunner(stream=open(\"/dev/null\", \"w\")).run(unittest.defaultTestLoader.loadTestsFromTestCase(T)))",
    "zipfile-bz2": "import zipfile, io, bz2\nb = io.BytesIO()\nz = zipfile.ZipFile(b, \"w\", zipfile.ZIP_DEFLATED)\nfor i in range(50): z.writestr(str(i), \"abc\" * i * 100)\nz.close()\nz = zipfile.ZipFile(b)\nprint(sum(len(z.read(n)) for n in z.namelist()), len(bz2.compress(b\"x\" * 100000)))",
}.items():
    guest(f"python-use-{name}", f"python3 -c '{text}'", "python3")

for name, text in {
    "hashes": "my %h; $h{$_ * 7919 % 10007} += $_ for 1 .. 50000; my $s = 0; $s += $h{$_} * $_ % 13 for sort { $a <=> $b } keys %h; print \"$s\\n\"",
    "regexes": "my $t = join \" \", map { $_ * 31 % 997 } 1 .. 5000; my $n = () = $t =~ /\\b(\\d)\\d*\\1\\b/g; $t =~ s/(\\d+)/$1 % 7/ge; print $n, \" \", length $t, \"\\n\"",
    "sockets": "use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => \"127.0.0.1\") or die; unless (fork) { my $c = IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $s->sockport); print $c \"line $_\\n\" for 1 .. 200; exit } my $c = $s->accept; my $n = 0; $n += length while <$c>; wait; print \"$n\\n\"",
    "digest-pack": "use Digest::SHA \"sha256_hex\"; use Digest::MD5 \"md5_hex\"; print sha256_hex(pack \"N*\", 1 .. 10000), md5_hex(pack \"w*\", 1 .. 10000), \"\\n\"",
    "sort-sprintf": "print join(\",\", (sort { $a cmp $b } map { sprintf \"%08.3f\", sin $_ } 1 .. 5000)[0 .. 9]), \"\\n\"",
    "signals": "my $n = 0; $SIG{ALRM} = sub { $n++; alarm 0 }; $SIG{USR1} = sub { $n += 10 }; alarm 1; kill USR1 => $$ for 1 .. 5; select undef, undef, undef, 0.1 while $n < 51; print \"$n\\n\"",
}.items():
    guest(f"perl-use-{name}", f"perl -e '{text}'", "perl")

for name, text in {
    "crypto": "const c = require(\"crypto\"); console.log(c.createHash(\"sha512\").update(\"x\".repeat(100000)).digest(\"hex\"), c.pbkdf2Sync(\"a\", \"b\", 5000, 32, \"sha256\").toString(\"hex\"))",
    "streams-zlib": "const z = require(\"zlib\"); z.gzip(Buffer.alloc(300000, \"abc\"), (e, b) => z.gunzip(b, (e, r) => console.log(b.length, r.length)))",
    "http": "const h = require(\"http\"); const s = h.createServer((q, r) => r.end(q.url.repeat(50))).listen(0, \"127.0.0.1\", async () => { let n = 0; for (let i = 0; i < 30; i++) n += await new Promise(d => h.get({ port: s.address().port, path: \"/\" + i, host: \"127.0.0.1\" }, r => { let t = \"\"; r.on(\"data\", x => t += x); r.on(\"end\", () => d(t.length)) })); console.log(n); s.close(); })",
    "child-process": "const { execFileSync } = require(\"child_process\"); let n = 0; for (let i = 1; i < 6; i++) n += Number(execFileSync(\"expr\", [String(i), \"*\", \"3\"])); console.log(n)",
    "wasm": "const b = Uint8Array.from([0,97,115,109,1,0,0,0,1,6,1,96,1,127,1,127,3,2,1,0,7,5,1,1,102,0,0,10,9,1,7,0,32,0,32,0,108,11]); WebAssembly.instantiate(b).then(m => { let s = 0; for (let i = 0; i < 1e5; i++) s = (s + m.instance.exports.f(i)) | 0; console.log(s) })",
}.items():
    guest(f"node-use-{name}", f"node -e '{text}'", "nodejs")
