//! What an example printed, without what differs between machines: long addresses, ticks, the calls further
//! out than `main`, the counts of programs that use the machine's C library, and what `info` says of the machine.

/// The text without what differs between machines.
pub fn steady(text: &str, exact_counts: bool) -> String {
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

/// Whether a text is as expected, where a line of dots stands for any number of lines.
pub fn is_as_expected(expected: &str, got: &str) -> bool {
    let (expected, got): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), got.lines().collect());
    lines_match(&expected, &got)
}

fn lines_match(expected: &[&str], got: &[&str]) -> bool {
    match expected {
        [] => got.is_empty(),
        [dots, rest @ ..] if is_elision(dots) => {
            (0..=got.len()).any(|left_out| lines_match(rest, &got[left_out..]))
        }
        [line, rest @ ..] => got.first() == Some(line) && lines_match(rest, &got[1..]),
    }
}

/// Whether a line stands for lines that are left out.
pub fn is_elision(line: &str) -> bool {
    matches!(line.trim(), "..." | "…")
}

#[test]
fn dots_stand_for_any_lines() {
    assert!(is_as_expected("a\n  ...\nd", "a\nb\nc\nd"));
    assert!(is_as_expected("a\n...\nd", "a\nd"));
    assert!(is_as_expected("...", ""));
    assert!(!is_as_expected("a\n...\nd", "a\nb"));
    assert!(!is_as_expected("a\nb", "a\nb\nc"));
}
