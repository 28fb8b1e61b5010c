"""More jobs of the ladder: large applications, tracers and containers. All of them are slow, or need large packages."""

import functools

import jobs

driver, guest, script = (functools.partial(make, slow=True) for make in (jobs.driver, jobs.guest, jobs.script))

PAGE = """printf '%s' '<html><body><p id="p">before</p><script>let s = 0; for (let i = 0; i < 100000; i++) s += i * i % 7; \
document.getElementById("p").textContent = "sum " + s;</script></body></html>' > page.html"""

# ---- browsers and databases --------------------------------------------------------------------
for name, flags in {"no-sandbox": "--no-sandbox", "sandbox": ""}.items():
    guest(f"chromium-{name}", f"bash -c 'HOME=$PWD chromium --headless {flags} --disable-gpu --user-data-dir=$PWD/data --dump-dom file://$PWD/page.html'",
          "chromium", setup=PAGE, stderr=False, alone=True, owner="" if flags else "nobody")
guest("firefox-screenshot", "bash -c 'mkdir -p p; HOME=$PWD firefox-esr --headless --profile $PWD/p --screenshot $PWD/out.png file://$PWD/page.html'",
      "firefox-esr", setup=PAGE, stderr=False, alone=True, files="out.png", keep=rb"^$")
driver("mariadb", "bash $LADDER/mariadb.sh", "mariadb-server", alone=True)

# ---- compilers ---------------------------------------------------------------------------------
script("ghc", "ghc -O1 -o hs work.hs > /dev/null && ./hs", "ghc", setup="cp $LADDER/work.hs .")

# ---- tracers and containers --------------------------------------------------------------------
BUILD = "printf '#include <stdio.h>\\nint square(int x) { return x * x; }\\nint main(void) { int s = 0; for (int i = 0; i < 5; i++) s += square(i); printf(\"sum %%d\\\\n\", s); return 3; }\\n' > a.c; gcc -g -O0 a.c -o program"
script("strace", "strace -f -o out ./program; echo $?; grep -c write out", "strace", setup=BUILD, stderr=False)
script("ltrace", "ltrace -o out ./program; echo $?; grep -c printf out", "ltrace", setup=BUILD, stderr=False)
guest("gdb-calls", "gdb -q -nx -batch -ex 'break square' -ex run -ex bt -ex 'print square(7)' -ex delete -ex continue ./program", "gdb", setup=BUILD, stderr=False,
      keep=rb"^#|^\$1|^sum|exited|nternal")
script("bwrap-all", "bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --die-with-parent sh -c 'echo $$ | wc -c; id -u; ls /tmp | wc -l; wc -l < /proc/net/dev'", "bubblewrap")
for name in ("user", "pid", "mount", "uts", "ipc", "net", "cgroup", "time"):
    fork = "--fork --mount-proc" if name == "pid" else "-r" if name == "user" else ""
    script(f"unshare-{name}", f"unshare --{name} {fork} sh -c 'id -u; echo *  | wc -w; readlink /proc/self/ns/{name} | cut -d: -f1; sh -c \"echo inner\"'", "util-linux")
