//! Functions of the C library and system calls, judged by what they are given: each function with each fault,
//! and with none, on a line of its own of one program. memcheck runs over the same program: whatever it finds
//! must be found, nothing may be found on a line that is right, and which faults are found beyond that is said
//! line by line.

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of the blocks. What malloc gives has six more, so that a small overflow damages nothing.
const SIZE: usize = 50;

/// A use of a function: `P` is a pointer to what is read or written, `N` how many bytes, `O` another block,
/// large enough, that holds a text.
struct Use {
    code: &'static str,
    /// Whether `P` is written.
    writes: bool,
    /// Whether `N` is how much of a text there is, which the terminator ends.
    text: bool,
    /// Whether it matters what the bytes are.
    decides: bool,
}

const fn copies(code: &'static str) -> Use {
    Use { code, writes: false, text: false, decides: false }
}

const fn fills(code: &'static str) -> Use {
    Use { writes: true, ..copies(code) }
}

const fn looks(code: &'static str) -> Use {
    Use { decides: true, ..copies(code) }
}

const fn text(code: &'static str) -> Use {
    Use { text: true, ..looks(code) }
}

const USES: &[Use] = &[
    copies("memcpy(O, P, N)"),
    copies("memmove(O, P, N)"),
    copies("mempcpy(O, P, N)"),
    copies("fwrite(P, 1, N, null)"),
    fills("memcpy(P, O, N)"),
    fills("memmove(P, O, N)"),
    fills("memset(P, 7, N)"),
    fills("strncpy(P, \"abc\", N)"),
    fills("stpncpy(P, \"abc\", N)"),
    fills("fread(P, 1, N, zero)"),
    fills("read(zeros, P, N)"),
    fills("readv(zeros, &(struct iovec){P, N}, 1)"),
    fills("wmemset((wchar_t *)P, 7, N / 4 + (N % 4 > 2))"),
    looks("sink = memcmp(P, copy, N)"),
    looks("sink = (long)memchr(P, 'q', N)"),
    looks("sink = (long)memrchr(P, 'q', N)"),
    looks("write(nowhere, P, N)"),
    looks("writev(nowhere, &(struct iovec){P, N}, 1)"),
    looks("sendto(link[0], P, N, MSG_DONTWAIT, 0, 0)"),
    text("sink = strlen(P)"),
    text("strcpy(O, P)"),
    text("stpcpy(O, P)"),
    text("O[0] = 0, strcat(O, P)"),
    text("O[0] = 0, strncat(O, P, 500)"),
    text("sink = strnlen(P, 500)"),
    text("sink = strncmp(P, copy, 500)"),
    text("sink = strcmp(P, copy)"),
    text("sink = strcasecmp(P, copy)"),
    text("sink = (long)strchr(P, 'q')"),
    text("sink = (long)strrchr(P, 'q')"),
    text("sink = (long)rawmemchr(P, 0)"),
    text("sink = strspn(P, \"xyz\")"),
    text("sink = strcspn(P, \"abc\")"),
    text("sink = (long)strpbrk(P, \"abc\")"),
    text("sink = (long)strstr(P, \"qq\")"),
    text("free(strdup(P))"),
    text("free(strndup(P, 500))"),
    text("fputs(P, null)"),
    text("fprintf(null, \"%s\", P)"),
    text("snprintf(O, 500, \"%s\", P)"),
    text("sink = access(P, 0)"),
];

/// What is wrong with a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Nothing,
    OnePast,
    Before,
    Freed,
    Unwritten,
}

const FAULTS: [Fault; 5] =
    [Fault::Nothing, Fault::OnePast, Fault::Before, Fault::Freed, Fault::Unwritten];

impl Use {
    /// Whether a fault is one that this use can have.
    fn can(&self, fault: Fault) -> bool {
        match fault {
            // What is before a block is the allocator's, which a text would damage.
            Fault::Before => !self.writes && !self.text,
            Fault::Unwritten => self.decides,
            // A write through a stale pointer damages the allocator's lists.
            Fault::Freed => !self.writes,
            Fault::Nothing | Fault::OnePast => true,
        }
    }

    /// One line of the program.
    fn line(&self, fault: Fault) -> String {
        let fill = match fault {
            Fault::Unwritten => String::new(),
            // No terminator in the block: the next one is behind it.
            Fault::OnePast if self.text => format!("memset(p, 'x', {SIZE});"),
            _ => format!("memset(p, 'x', {}); p[{}] = 0;", SIZE - 1, SIZE - 1),
        };
        let (pointer, count) = match fault {
            Fault::Before => ("(p - 1)", SIZE),
            Fault::OnePast => ("p", SIZE + 1),
            _ => ("p", SIZE),
        };
        let count = count.to_string();
        let code: String = self
            .code
            .split_inclusive(|character: char| !character.is_ascii_alphanumeric())
            .map(|word| match word.trim_end_matches(|one: char| !one.is_ascii_alphanumeric()) {
                "P" => word.replacen('P', pointer, 1),
                "N" => word.replacen('N', &count, 1),
                "O" => word.replacen('O', "other", 1),
                _ => word.to_owned(),
            })
            .collect();
        let freed = if fault == Fault::Freed { "free(p); " } else { "" };
        let after = if fault == Fault::Freed { "" } else { " free(p);" };
        format!("{{ char *p = malloc({SIZE}); {fill} {freed}{code};{after} }}")
    }
}

/// A line of the program, by its number there.
struct Line {
    number: usize,
    code: &'static str,
    fault: Fault,
}

const HEAD: &str = r#"#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>
volatile long sink;
int main(void) {
    int zeros = open("/dev/zero", O_RDONLY), nowhere = open("/dev/null", O_WRONLY), link[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, link);
    FILE *null = fopen("/dev/null", "w"), *zero = fopen("/dev/zero", "r");
    char *other = calloc(1, 1000), *copy = calloc(1, 1000);
    memset(copy, 'x', 200);
    memset(other, 'o', 200);
"#;

fn program(folder: &Path) -> (PathBuf, Vec<Line>) {
    let (mut source, mut lines) = (HEAD.to_owned(), Vec::new());
    for one in USES {
        for fault in FAULTS.into_iter().filter(|fault| one.can(*fault)) {
            lines.push(Line { number: source.lines().count() + 1, code: one.code, fault });
            writeln!(source, "    {}", one.line(fault)).expect("text grows");
        }
    }
    source.push_str("    return 0;\n}\n");
    let file = folder.join("uses.c");
    std::fs::write(&file, source).expect("written");
    let program = folder.join("uses");
    let flags = ["-g", "-O0", "-w", "-fno-builtin", "-U_FORTIFY_SOURCE", "-o"];
    let built = Command::new("gcc").args(flags).arg(&program).arg(&file).status();
    assert!(built.expect("a compiler").success());
    (program, lines)
}

/// The numbers behind `uses.c:` in a text.
fn numbers(text: &str) -> BTreeSet<usize> {
    let behind = text.split("uses.c:").skip(1);
    let digits = behind.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect());
    digits.filter_map(|digits: String| digits.parse().ok()).collect()
}

/// The lines at which memcheck finds something, and not those where a block came from.
fn memcheck(program: &Path) -> BTreeSet<usize> {
    let output = Command::new("valgrind")
        .args(["--error-limit=no", "-q"])
        .arg(program)
        .output()
        .expect("valgrind, which scripts/install-test-needs installs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut found = BTreeSet::new();
    let mut error = true;
    for line in text.lines() {
        // What happened is at one space, what is known about a block at two, calls at more.
        let line = line.split_once("== ").map_or("", |(_, rest)| rest);
        match line.len() - line.trim_start().len() {
            0 => error = !line.is_empty(),
            1 => error = false,
            _ if error => found.extend(numbers(line)),
            _ => {}
        }
    }
    found
}

/// The lines at which the tool finds something.
fn found(program: &Path, words: &[&str]) -> BTreeSet<usize> {
    let output = support::tool(&["run", "--json"]).args(words).arg("--").arg(program).output();
    let output = output.expect("the tool");
    let report: Value = serde_json::from_str(&support::text(&output)).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", support::text(&output), support::errors(&output))
    });
    let findings = report["findings"].as_array().expect("a list").clone();
    findings.iter().filter_map(|one| one["place"]["line"].as_u64()).map(|at| at as usize).collect()
}

#[test]
fn what_functions_are_given_is_judged_as_memcheck_does_and_beyond() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, lines) = program(folder.path());
    let ours = found(&program, &["--rules", "memory,uninitialised"]);
    let theirs = memcheck(&program);
    let mut wrong = Vec::new();
    for line in &lines {
        let (found, expected) = (ours.contains(&line.number), line.fault != Fault::Nothing);
        if found != expected {
            let peer = theirs.contains(&line.number);
            let (code, fault) = (line.code, line.fault);
            wrong.push(format!("{code}: {fault:?}: found {found}, by memcheck {peer}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
    let right = |line: &&Line| line.fault == Fault::Nothing;
    assert!(lines.iter().filter(right).all(|line| !theirs.contains(&line.number)));
    // The oracle finds most of it, or it is none.
    assert!(theirs.len() * 2 > lines.len(), "memcheck finds {} of {}", theirs.len(), lines.len());
}
