"""The table of the ladder's jobs, lowest rung first.

`guest` runs a command line under the tool, `script` a bash script (bash and everything it starts are
the guest), `driver` a native script that starts the guest itself with `$RUN PROGRAM ...`: servers and
whatever talks to them. `$CORPUS` and `$LADDER` are the folders of inputs and of helper programs.
A job prints only what two native runs have in common. `slow` jobs take long, or need packages of
hundreds of megabytes; the others are what `--quick` runs.
"""

import dataclasses
import shlex


@dataclasses.dataclass
class Job:
    """One job; `keep` is a pattern of the stdout lines that count, None for all of them; `flags` go
    to the tool."""

    name: str
    command: str
    needs: tuple = ()
    setup: str = ""
    files: tuple = ()
    stdin: bytes | None = None
    keep: bytes | None = None
    stderr: bool = True
    code: int = 0
    slow: bool = False
    driver: bool = False
    alone: bool = False
    owner: str = ""
    modes: tuple = ()
    flags: tuple = ()


JOBS = []


def guest(name, command, needs="", files="", **more):
    JOBS.append(Job(name, command, tuple(needs.split()), files=tuple(files.split()), **more))


def script(name, text, needs="", **more):
    guest(name, f"bash -c {shlex.quote(text)}", needs, **more)


def driver(name, text, needs="", **more):
    guest(name, text, needs, driver=True, stderr=False, **more)


# ---- static programs and other libcs -----------------------------------------------------------
guest("static-nolibc", "./prog", setup="gcc -nostdlib -static $LADDER/write.S -o prog")
guest("static-glibc", "./prog $CORPUS/text", setup="gcc -O2 -static $LADDER/words.c -o prog")
guest("musl-static", "./prog $CORPUS/text", "musl-tools", setup="musl-gcc -O2 -static $LADDER/words.c -o prog")
guest("musl-dynamic", "./prog $CORPUS/text", "musl-tools musl", setup="musl-gcc -O2 $LADDER/words.c -o prog")
guest("busybox-sort", "busybox sort -u $CORPUS/rows.csv", "busybox-static")
guest("busybox-sha", "busybox sha256sum $CORPUS/text", "busybox-static")
guest("busybox-ash", "busybox ash -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; echo $i; busybox seq 5 | busybox awk \"{print \\$1*2}\"'", "busybox-static")
guest("busybox-tar", "busybox tar -cf - -C $CORPUS tree/d0", "busybox-static")

# ---- coreutils ---------------------------------------------------------------------------------
guest("true", "true")
guest("false", "false", code=1)
guest("echo", "echo hello world")
guest("ls", "ls -lRn --time-style=+ $CORPUS/project")
guest("cat", "cat $CORPUS/rows.csv")
guest("wc", "wc $CORPUS/text $CORPUS/rows.csv")
guest("sort-parallel", "sort --parallel=2 -k2 -t, $CORPUS/rows.csv")
guest("sha512sum", "sha512sum $CORPUS/text $CORPUS/image.ppm")
guest("factor", "factor 18446744073709551557 1000000007000000009 1152921504606846883")
guest("seq-shuf", "shuf -n 20 --random-source=$CORPUS/text $CORPUS/text")
guest("od-base64", "bash -c 'od -An -tx1 $CORPUS/image.ppm | tail -5; base64 $CORPUS/image.ppm | md5sum'")
guest("du-stat", "du -a --apparent-size $CORPUS/project")
guest("dd", "dd if=$CORPUS/text of=out bs=777 count=300 status=none", files="out")
guest("ls-missing", "ls /no/such/file", code=2)
script("coreutils-tree", "cp -a $CORPUS/tree copy; mv copy moved; ln moved/d0/e0/file0.txt hard; rm -r moved/d1; chmod -R u-w moved/d2; "
       "find moved | sort | head -20; touch -d @0 hard; stat -c '%s %Y %h' hard; split -n 3 hard part; cat parta? | cmp - hard && tac hard | rev | head -2", files="part*")
script("text-tools", "cut -d, -f2 $CORPUS/rows.csv | sort | uniq -c | sort -k1,1nr -k2 | head; paste -d: <(seq 5) <(seq 6 10); "
       "join -t, <(head -50 $CORPUS/rows.csv | sort) <(tail -n +20 $CORPUS/rows.csv | head -50 | sort) | wc; tr a-z A-Z < $CORPUS/rows.csv | fold -w 40 | md5sum; numfmt --to=iec 123456789; expr 6 \\* 7")
script("xargs-parallel", "seq 1 60 | xargs -P 4 -n 5 sh -c 'echo $(($1 + $2 + $3 + $4 + $5))' _ | sort -n | md5sum; printf 'a b\\0c' | xargs -0 -n1 echo")
script("stdbuf-nohup-timeout", "stdbuf -oL seq 3 | cat; nohup true; timeout 0.2 sleep 10; echo $?; nice -n 5 nice; env -i A=1 env; setsid -w echo session")
guest("find", "find $CORPUS/tree -type f -size +1k -name '*3*' -newermt 1980-01-01 -printf '%P %s\\n'")
guest("find-exec", "find $CORPUS/project -name '*.c' -exec wc -l {} +")

# ---- compressors -------------------------------------------------------------------------------
guest("bzip2", "bzip2 -k text", "bzip2", setup="cp $CORPUS/text .", files="text.bz2")
guest("bunzip2", "bunzip2 text.bz2", "bzip2", setup="cp $CORPUS/text .; bzip2 text", files="text")
guest("gzip", "gzip -9nk text", "gzip", setup="cp $CORPUS/text .", files="text.gz")
guest("xz-threads", "xz -T2 -1 --block-size=500000 -k text", "xz-utils", setup="cp $CORPUS/text .", files="text.xz")
guest("unxz", "xz -dc text.xz", "xz-utils", setup="xz -0c $CORPUS/text > text.xz")
guest("zstd-threads", "zstd -q -T2 -5 text", "zstd", setup="cp $CORPUS/text .", files="text.zst")
guest("lz4", "lz4 -q -9 text out.lz4", "lz4", setup="cp $CORPUS/text .", files="out.lz4")
guest("pigz", "pigz -n -p 3 -k text", "pigz", setup="cp $CORPUS/text .", files="text.gz")
guest("brotli", "brotli -q 5 -k text", "brotli", setup="head -c 500000 $CORPUS/text > text", files="text.br")
script("tar-gzip", "tar --sort=name --mtime=@0 --owner=0 --group=0 -C $CORPUS -czf out.tgz tree project && tar -tzf out.tgz | wc -l && mkdir x && tar -xzf out.tgz -C x && diff -r $CORPUS/tree x/tree && md5sum < x/project/main.c", "gzip tar")
script("zip-cpio", "find $CORPUS/tree/d0 -type f | sort | cpio -o --quiet -H newc --reproducible | wc -c", "cpio")

# ---- small languages ---------------------------------------------------------------------------
guest("bc", "bc -l", "bc", stdin=b"scale=300\n4*a(1)\nfor(i=0;i<300;i++)x=x*3%10007+i\nx\n2^1000\n")
guest("dc", "dc -e '2 1000 ^ p 100 k 2 v p'", "dc")
guest("gawk", "gawk -F, '{s[$2]+=$3; n++} END {asort(s, t); print n, t[1], t[length(t)]; printf \"%.6f\\n\", sin(1)}' $CORPUS/rows.csv", "gawk")
guest("mawk", "mawk '{for(i=1;i<=NF;i++)c[$i]++} END {for(w in c) if(c[w]>2000) print c[w], w | \"sort -n\"}' $CORPUS/text", "mawk")
guest("sed", "sed -nE 's/([a-z]+) ([a-z]+)/\\2 \\1/g; /^T/p' $CORPUS/text", "sed")
guest("grep", "grep -cE '(ab|cd).*(ef|th)' $CORPUS/text", "grep")
guest("grep-P-jit", "grep -oP '(?<=\\s)(\\w)\\w*\\1(?=\\s)' $CORPUS/text", "grep")
guest("pcre2-jit", "pcre2grep -o '\\b([a-z])[a-z]*\\1\\b' $CORPUS/text", "pcre2-utils")
script("diff-patch", "cp $CORPUS/text a; sed '1~97d;5~31s/e/E/' a > b; diff -u a b > p; grep -c '^[-+]' p; cp a c; patch -s c p; cmp b c; echo $?; diff3 a b c | wc -l", "diffutils patch")
guest("m4", "m4 -", "m4", stdin=b"define(`f',`ifelse($1,0,1,`eval($1*f(decr($1)))')')f(9)\nsyscmd(`echo shell')\n")
guest("jq", "jq -c '[.[] | select(.value % 7 == 0) | {id, n: (.name | length)}] | group_by(.n) | map({n: .[0].n, c: length})' $CORPUS/data.json", "jq")
guest("datamash", "datamash -t, -s -g 3 mean 4 count 1", "datamash", stdin=b"1,a,2,0.5\n2,b,2,1.5\n3,c,1,9\n")
script("bison-flex", "printf '%%%%\\n[0-9]+ printf(\"<%%s>\",yytext);\\n%%%%\\nint yywrap(void){return 1;} int main(void){yylex();return 0;}\\n' > l.l; flex l.l && gcc lex.yy.c -o l 2>/dev/null && echo a12b345 | ./l", "flex gcc")
guest("nasm", "nasm -f elf64 a.asm -o a.o", "nasm", setup="printf 'section .text\\nglobal f\\nf: mov rax, [rdi+8*rsi]\\nvaddps ymm0, ymm1, [rax]\\nret\\n' > a.asm", files="a.o")
guest("file-type", "file -b /bin/true $CORPUS/text $CORPUS/image.ppm $CORPUS/data.json", "file", keep=rb"ELF|text|image|JSON")

# ---- shells ------------------------------------------------------------------------------------
guest("dash", "dash $LADDER/shell.sh", "dash")
guest("bash", "bash $LADDER/shell.sh", "bash")
guest("bash-bashisms", "bash $LADDER/bash.sh", "bash")
guest("bash-job-control", "python3 -I $LADDER/pty_session.py bash --norc --noprofile -i", "bash python3")

# ---- perl, python, other interpreters ----------------------------------------------------------
guest("perl", "perl $LADDER/work.pl $CORPUS/text", "perl")
guest("perl-fork", "perl -e 'for my $i (1..5) { my $p = fork; if (!$p) { exit $i } waitpid $p, 0; print $? >> 8, \"\\n\" } local $SIG{ALRM} = sub { die \"alarm\\n\" }; eval { alarm 1; select undef, undef, undef, 20 }; print $@; print `echo backtick`'", "perl")
guest("python", "python3 -I $LADDER/work.py $CORPUS", "python3")
guest("python-threads", "python3 -I $LADDER/threads.py", "python3")
guest("python-multiprocessing", "python3 -I $LADDER/processes.py", "python3")
guest("python-ctypes-mmap", "python3 -I -c 'import ctypes, mmap; c = ctypes.CDLL(None); f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)); a = (ctypes.c_int * 9)(*[5, 3, 8, 1, 9, 2, 7, 4, 6]); c.qsort(a, 9, 4, f(lambda x, y: x[0] - y[0])); print(list(a)); m = mmap.mmap(-1, 8192); m[0:5] = b\"hello\"; print(m[:5])'", "python3")
guest("ruby", "ruby -e 'puts (1..5000).select { |n| (2..Math.sqrt(n)).none? { |d| n % d == 0 } }.sum; t = 4.times.map { |i| Thread.new { i * i } }; p t.map(&:value); puts IO.popen([\"echo\", \"sub\"]).read; h = Hash.new(0); File.foreach(ARGV[0]) { |l| h[l.size] += 1 }; p h.max_by { |k, v| [v, k] }' $CORPUS/text", "ruby")
guest("php", "php -n -r '$a = []; for ($i = 0; $i < 100000; $i++) $a[$i % 997] = ($a[$i % 997] ?? 0) + $i; ksort($a); echo md5(json_encode($a)), PHP_EOL; echo preg_replace(\"/(a)(b)/\", \"$2$1\", \"abab\"), PHP_EOL;'", "php-cli")
guest("tcl", "tclsh t.tcl", "tcl", setup="printf 'proc fib n {expr {$n<2?$n:[fib [expr $n-1]]+[fib [expr $n-2]]}}\\nputs [fib 17]\\nputs [lsort -integer {5 3 9}]\\nputs [exec echo sub]\\n' > t.tcl")
guest("lua", "lua5.4 $LADDER/work.lua", "lua5.4")
guest("luajit", "luajit $LADDER/work.lua", "luajit")
guest("luajit-joff", "luajit -joff $LADDER/work.lua", "luajit")
guest("guile", "guile --no-auto-compile -c '(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (display (f 20)) (newline)'", "guile-3.0", slow=True)
guest("ocaml", "ocaml o.ml", "ocaml-nox", slow=True, setup="printf 'let rec f n = if n < 2 then n else f (n-1) + f (n-2);;\\nprint_endline (string_of_int (f 22));;\\nList.iter print_int (List.sort compare [3;1;2]);;' > o.ml")
guest("ocamlopt-program", "./o", "ocaml-nox", slow=True, setup="printf 'let rec f n = if n < 2 then n else f (n-1) + f (n-2)\\nexception E of int\\nlet () = print_endline (string_of_int (f 27)); (try raise (E 5) with E n -> print_int n)' > o.ml; ocamlfind ocamlopt o.ml -o o 2>/dev/null || ocamlopt o.ml -o o")
guest("emacs-batch", "emacs --batch -Q --eval '(progn (dotimes (i 5) (princ (format \"%d \" (* i i)))) (with-temp-buffer (insert \"b\\nc\\na\\n\") (sort-lines nil (point-min) (point-max)) (princ (buffer-string))))'", "emacs-nox", slow=True)
guest("vim-ex", "vim -es -u NONE -i NONE -c '%sort' -c '%s/\\v(\\w+)/<\\1>/g' -c 'w! out' -c 'qa!' in", "vim", setup="head -200 $CORPUS/text > in", files="out")
guest("shellcheck-haskell", "shellcheck -f gcc $LADDER/bad.sh", "shellcheck", code=1)

# ---- databases and crypto ----------------------------------------------------------------------
guest("sqlite-100000-rows", "sqlite3 -batch test.db '.read $LADDER/rows.sql'", "sqlite3")
guest("openssl-digest", "openssl dgst -sha256 -sha3-256 $CORPUS/text", "openssl")
guest("openssl-cbc", "openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -k secret -in $CORPUS/text -out out", "openssl", files="out")
script("openssl-rsa", "openssl genrsa -out k 2048 2>/dev/null && openssl rsa -in k -pubout -out p 2>/dev/null && openssl dgst -sha256 -sign k -out s $CORPUS/text && openssl dgst -sha256 -verify p -signature s $CORPUS/text", "openssl")
script("ssh-keygen", "ssh-keygen -q -t ed25519 -N '' -f k -C comment && ssh-keygen -y -f k | cut -d' ' -f1 && cp $LADDER/shell.sh . && ssh-keygen -Y sign -q -f k -n file shell.sh && head -1 shell.sh.sig", "openssh-client")
guest("gpg-digest", "gpg --homedir . --batch --no-tty --print-md SHA512 $CORPUS/image.ppm", "gnupg", stderr=False)

# ---- compilers and builds ----------------------------------------------------------------------
guest("gcc-make-project", "make -s check", "gcc make", setup="cp -r $CORPUS/project/. .", files="*.o program libmods.a")
guest("gcc-make-parallel", "make -s -j4 check", "gcc make", setup="cp -r $CORPUS/project/. .", files="*.o program", slow=True)
guest("g++", "g++ -O2 -std=c++17 -c $LADDER/templates.cpp -o out.o", "g++", files="out.o", slow=True)
script("binutils", "gcc -c $CORPUS/project/mod0.c -o a.o; objdump -dr a.o | tail -5; nm a.o; readelf -hS a.o | md5sum; strip a.o; size a.o; strings -n 8 /bin/true | head -3", "gcc binutils")
# What gdb debugs must be native: the breakpoints it writes are in the original code, not in the cache.
guest("gdb-batch", "gdb -nx -batch -ex 'break mod3' -ex run -ex bt -ex 'print x' -ex 'kill' ./program", "gdb gcc make", slow=True, stderr=False, keep=rb"^#|^\$1",
      flags=("--children=native",), setup="cp -r $CORPUS/project/. .; make -s CFLAGS='-g -O0' program")
guest("gdb-static-look", "gdb -nx -batch -ex 'info functions mod' -ex 'ptype struct node' -ex 'print 6*7' ./program", "gdb gcc make", stderr=False,
      setup="cp -r $CORPUS/project/. .; make -s CFLAGS='-g -O0' program")
guest("rustc-program", "./prog", setup="rustc -O $LADDER/../programs/rust_mix.rs -o prog")

# ---- git, rsync, search tools ------------------------------------------------------------------
GIT = "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_PAGER=cat; "
REPO = "bash $CORPUS/repo.sh repo"
script("git-clone-log", GIT + "git clone -q repo clone && cd clone && git log --graph --stat --format='%h %an %ad %s' --date=iso && git status -sb", "git", setup=REPO)
script("git-blame-diff", GIT + "cd repo && git blame -s log0.txt | tail -5; git diff v10 v40 --stat; git diff -M v20..v30 | md5sum; git grep -c the v30 | head -5; git show v20:dir0/file0.txt | md5sum", "git", setup=REPO)
script("git-gc", GIT + "cd repo && git gc -q --prune=now && git fsck --full --no-dangling && git count-objects -v | grep -E '^(count|in-pack|packs)' && git rev-parse HEAD", "git", setup=REPO)
script("git-rebase-stash", GIT + "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c; cd repo && git checkout -q side && git rebase -q main 2>/dev/null; git rebase --abort 2>/dev/null; echo x >> log0.txt; git stash -q && git stash pop -q && git diff --stat; git cherry -v main | wc -l; git bisect start -q HEAD v10 2>/dev/null | tail -1", "git", setup=REPO, stderr=False)
script("rsync", "rsync -a --stats $CORPUS/tree/ copy/ | grep -E 'Number of (regular )?files' ; diff -r $CORPUS/tree copy && rsync -ain $CORPUS/tree/ copy/ | wc -l", "rsync")
guest("ripgrep-rust", "rg --no-config -j2 --sort path -c th $CORPUS/tree", "ripgrep")
guest("fd-rust", "fdfind --no-ignore -j2 -e txt 'file1[0-9]' --base-directory $CORPUS/tree -X ls", "fd-find")
guest("less-pipe", "less -E $CORPUS/data.json", "less")

# ---- pictures and sound ------------------------------------------------------------------------
guest("imagemagick", "convert-im6.q16 $CORPUS/image.ppm -resize 150% -blur 0x3 -rotate 17 -depth 8 out.ppm", "imagemagick", files="out.ppm")
guest("ffmpeg-avx2", "ffmpeg -loglevel error -y -f lavfi -i testsrc=duration=1:size=160x120:rate=10 -threads 2 -c:v mpeg4 -bitexact -flags +bitexact out.avi", "ffmpeg", files="out.avi", slow=True)
guest("ffmpeg-scale", "ffmpeg -loglevel error -y -i $CORPUS/image.ppm -vf scale=320:240,eq=contrast=1.2 -bitexact out.ppm", "ffmpeg", files="out.ppm", slow=True)

# ---- Go, JavaScript, Java ----------------------------------------------------------------------
guest("go-goroutines", "./prog", "golang-go", slow=True, setup="GOCACHE=$PWD/.c GO111MODULE=off go build -o prog $LADDER/work.go; rm -rf .c")
script("go-build", "GOCACHE=$PWD/cache GO111MODULE=off go build -o out $LADDER/work.go && ./out", "golang-go", slow=True)
guest("node", "node $LADDER/work.js $CORPUS/data.json", "nodejs")
guest("node-workers", "node $LADDER/workers.js", "nodejs", slow=True)
guest("java", "java -Xshare:auto -cp . Work", "openjdk-17-jdk-headless", slow=True, setup="cp $LADDER/Work.java .; javac Work.java")
guest("java-interpreted", "java -Xint -cp . Work 20", "openjdk-17-jdk-headless", slow=True, setup="cp $LADDER/Work.java .; javac Work.java")
guest("java-g1-threads", "java -XX:+UseG1GC -Xmx256m -cp . Work 200", "openjdk-17-jdk-headless", slow=True, setup="cp $LADDER/Work.java .; javac Work.java")
guest("javac", "javac -d . $LADDER/Work.java", "openjdk-17-jdk-headless", slow=True, files="*.class")

# ---- servers on loopback -----------------------------------------------------------------------
driver("redis-10000-requests", "python3 -I $LADDER/serve_redis.py 10000", "redis-server", slow=True)
driver("redis-500-requests", "python3 -I $LADDER/serve_redis.py 500", "redis-server")
driver("nginx-10000-requests", "python3 -I $LADDER/serve_nginx.py 10000", "nginx-light", slow=True)
driver("nginx-500-requests", "python3 -I $LADDER/serve_nginx.py 500", "nginx-light")
driver("curl", "python3 -I $LADDER/serve_curl.py", "curl")
driver("postgresql", "bash $LADDER/postgres.sh", "postgresql-15", slow=True, alone=True, owner="nobody")

# ---- Python's own tests ------------------------------------------------------------------------
TESTS = "python3 -m test --timeout 600 -q"
RESULT = rb"^(Tests result|Result|== Tests result|.*tests? (OK|failed))"
for module in ("test_threading", "test_signal", "test_subprocess", "test_thread", "test_queue", "test_mmap",
               "test_select", "test_os", "test_selectors", "test_fork1", "test_posix", "test_pty", "test_faulthandler"):
    guest(f"python-{module}", f"{TESTS} {module}", "libpython3.11-testsuite", keep=RESULT, stderr=False, slow=True)
guest("python-test_multiprocessing", f"{TESTS} test_multiprocessing_fork", "libpython3.11-testsuite", keep=RESULT, stderr=False, slow=True)
for module in ("test_json", "test_re", "test_struct", "test_zlib", "test_decimal", "test_generators"):
    guest(f"python-{module}", f"{TESTS} {module}", "libpython3.11-testsuite", keep=RESULT, stderr=False, slow=module in ("test_decimal", "test_re"))
