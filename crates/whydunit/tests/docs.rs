//! The examples of the pages: every `console` block is run, and must print what the page says.
//! `BLESS=1` writes the pages anew.
//!
//! What differs between machines is left out of the comparison: long addresses, ticks, the calls further
//! out than `main`, the counts of programs that use the machine's C library, and what `info` says of
//! the machine.

mod support;

use std::path::Path;
use std::process::Command;

/// A page and what its examples need.
struct Page {
    file: &'static str,
    needs: &'static [&'static str],
    exact_counts: bool,
    /// Whether the output of the only command looks like further commands.
    one_command: bool,
}

const PAGES: [Page; 4] = [
    Page {
        file: "docs/run.md",
        needs: &["examples/demo/shelf.c"],
        exact_counts: true,
        one_command: false,
    },
    Page {
        file: "docs/count.md",
        needs: &["examples/count/sum.S"],
        exact_counts: true,
        one_command: false,
    },
    Page {
        file: "docs/record.md",
        needs: &["examples/record/tally.c"],
        exact_counts: false,
        one_command: false,
    },
    Page { file: "README.md", needs: &[], exact_counts: false, one_command: true },
];

#[test]
fn the_examples_of_the_pages_print_what_the_pages_say() {
    for page in PAGES {
        let path = support::root().join(page.file);
        let text = std::fs::read_to_string(&path).expect("a page");
        let folder = tempfile::tempdir().expect("a folder");
        for need in page.needs {
            let from = support::root().join(need);
            let name = from.file_name().expect("a name");
            std::fs::copy(&from, folder.path().join(name)).expect("copied");
        }
        let (mut told, mut rest, mut blocks) = (String::new(), text.as_str(), 0);
        while let Some((before, after)) = rest.split_once("```console\n") {
            let (block, after) = after.split_once("```").expect("the end of a block");
            let commands = block.lines().filter_map(|line| line.strip_prefix("$ "));
            let count = if page.one_command { 1 } else { usize::MAX };
            let commands: Vec<&str> = commands.take(count).collect();
            let got = transcript(&commands, folder.path());
            if std::env::var_os("BLESS").is_none() {
                let (expected, got) =
                    (steady(block, page.exact_counts), steady(&got, page.exact_counts));
                assert_eq!(got, expected, "{}: BLESS=1 writes it anew", page.file);
            }
            told += &format!("{before}```console\n{got}```");
            (rest, blocks) = (after, blocks + 1);
        }
        assert!(blocks > 0, "{} has no example", page.file);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, told + rest).expect("written");
        }
    }
}

/// Commands with what they print, as a terminal would show them.
fn transcript(commands: &[&str], folder: &Path) -> String {
    let tool = Path::new(env!("CARGO_BIN_EXE_whydunit"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tool.parent().expect("a folder").display());
    let mut text = String::new();
    for words in commands {
        let words_run = format!("{{ {words}; }} 2>&1");
        let output = Command::new("sh")
            .args(["-c", &words_run])
            .current_dir(folder)
            .env("PATH", &path)
            .env_remove("CC")
            .env_remove("LD_LIBRARY_PATH")
            .output()
            .expect("a shell");
        text += &format!("$ {words}\n{}", String::from_utf8_lossy(&output.stdout));
    }
    text
}

/// The text without what differs between machines.
fn steady(text: &str, exact_counts: bool) -> String {
    let mut lines = Vec::new();
    let mut beyond_main = false;
    for line in text.lines() {
        let is_call = line.trim_start().starts_with('#');
        if !(beyond_main && is_call) {
            beyond_main = is_call && line.contains(" main");
            let line = without_count(&without_machine(line), exact_counts);
            lines.push(without_addresses(&without_ticks(&line)));
        }
    }
    lines.join("\n")
}

/// Of what `info` says, only the name of a row that tells of the machine or the moment, and no sizes.
fn without_machine(line: &str) -> String {
    const ROWS: [&str; 6] = ["recording", "folder", "recorded", "took", "needs", "contents"];
    match line.split_once("  ") {
        Some((row, _)) if ROWS.contains(&row) => format!("{row} …"),
        Some(("", _)) if line.ends_with(" of log") => without_numbers(line),
        _ => line.to_owned(),
    }
}

fn without_numbers(line: &str) -> String {
    let (mut out, mut in_number) = (String::new(), false);
    for c in line.chars() {
        let was_in_number = in_number;
        in_number = c.is_ascii_digit() || in_number && c == '.';
        match (was_in_number, in_number) {
            (false, true) => out.push('N'),
            (true, true) => {}
            (_, false) => out.push(c),
        }
    }
    out
}

/// How many ticks a program takes to its first line, its C library decides.
fn without_ticks(line: &str) -> String {
    let mut parts = line.split('@');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        out + "@" + part.trim_start_matches(|digit: char| digit.is_ascii_digit())
    })
}

fn without_count(line: &str, exact_counts: bool) -> String {
    let known = |name: &str| !exact_counts || name == "blocks";
    match line.trim_start().split_once("  ") {
        Some((number, name))
            if number.bytes().all(|b| b.is_ascii_digit()) && known(name.trim()) =>
        {
            format!("N {name}")
        }
        _ => line.to_owned(),
    }
}

/// Runs of five and more hexadecimal digits that have a digit in them become one sign.
fn without_addresses(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let hex = digits.strip_prefix("0x").unwrap_or(digits);
        let long = hex.len() >= 5 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        if long && hex.bytes().any(|b| b.is_ascii_digit()) {
            out += "…";
            out += &word[digits.len()..];
        } else {
            out += word;
        }
    }
    out
}

#[test]
fn only_what_differs_is_left_out() {
    let shown = "  #0 f at a.c:3\n  #1 main at a.c:9\n  #2 _start\n  registers\n      rax 0000000000000000\n";
    let kept = "  #0 f at a.c:3\n  #1 main at a.c:9\n  registers\n      rax …";
    assert_eq!(steady(shown, true), kept);
    assert_eq!(steady("   12  blocks\n   13  loads", true), "N blocks\n   13  loads");
    assert_eq!(
        steady("took         5.2 ms\nended        exit 3", false),
        "took …\nended        exit 3"
    );
    assert_eq!(steady("  0 ./a: exit 3, 1.5 kB of log", false), "  N ./a: exit N, N kB of log");
    assert_eq!(steady("at a.c:3 (f)  @712/1", false), "at a.c:3 (f)  @/1");
    assert_eq!(steady("p = 0x7fffffff, 12345 0x8 added", false), "p = …, … 0x8 added");
}
