//! Suppressions in valgrind's format: read, matched against stacks, and written.
//!
//! ```text
//! {
//!    a name
//!    Memcheck:Free
//!    fun:free
//!    ...
//!    obj:*/libold.so*
//! }
//! ```
//! Kinds of Memcheck and Helgrind stand for the rules and kinds of findings that are the same; `Whydunit:RULE` names
//! one, `Whydunit:RULE/allocated` the same by the calls that made the block. The thread sanitizer's lines (`race:PATTERN`) are read by [`read_sanitizer`].

/// A frame as suppressions see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFrame {
    /// The function.
    pub function: Option<String>,
    /// The file it is in.
    pub object: Option<String>,
}

/// One line about a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Function(String),
    Object(String),
    /// Any number of frames.
    Any,
}

/// A suppression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// Its name.
    pub name: String,
    /// Whether it comes with the tool.
    pub shipped: bool,
    rules: Vec<String>,
    lines: Vec<Line>,
}

/// What comes with the tool: idioms that are harmless by design.
#[must_use]
pub fn shipped() -> Vec<Suppression> {
    // A test reads the file, so that it never fails for a user.
    let read = read(include_str!("../../../../rules/harmless.supp")).unwrap_or_default();
    read.into_iter().map(|one| Suppression { shipped: true, ..one }).collect()
}

/// Reads a file. Suppressions for other tools are left out. An error names the line.
pub fn read(text: &str) -> Result<Vec<Suppression>, String> {
    let mut found = Vec::new();
    let mut lines = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    while let Some((number, line)) = lines.next() {
        if line != "{" {
            return Err(format!("line {number}: expected `{{`, found `{line}`"));
        }
        let mut inner = Vec::new();
        loop {
            match lines.next() {
                Some((_, "}")) => break,
                Some(line) => inner.push(line),
                None => return Err(format!("line {number}: the suppression is never closed")),
            }
        }
        found.extend(one(number, &inner)?);
    }
    Ok(found)
}

fn one(number: usize, inner: &[(usize, &str)]) -> Result<Option<Suppression>, String> {
    let [(_, name), (kind_line, kind), rest @ ..] = inner else {
        return Err(format!("line {number}: expected a name and a kind such as `Memcheck:Free`"));
    };
    let Some((tools, kind)) = kind.split_once(':') else {
        return Err(format!("line {kind_line}: expected TOOL:KIND, found `{kind}`"));
    };
    let mut rules = Vec::new();
    for tool in tools.split(',') {
        match tool {
            "Memcheck" => rules.extend(of_memcheck(kind).iter().map(|&rule| rule.to_owned())),
            "Helgrind" | "drd" => {
                rules.extend(of_helgrind(kind).iter().map(|&rule| rule.to_owned()));
            }
            "Whydunit" => rules.push(kind.to_owned()),
            _ => {}
        }
    }
    let mut lines = Vec::new();
    for (at, line) in rest {
        lines.push(match line.split_once(':') {
            _ if *line == "..." => Line::Any,
            Some(("fun", pattern)) => Line::Function(pattern.to_owned()),
            Some(("obj", pattern)) => Line::Object(pattern.to_owned()),
            // How memory leaked, or which parameter it was: every way.
            Some(("match-leak-kinds", _)) => continue,
            _ if kind == "Param" && lines.is_empty() => continue,
            _ => {
                return Err(format!(
                    "line {at}: expected `fun:…`, `obj:…` or `...`, found `{line}`"
                ));
            }
        });
    }
    Ok((!rules.is_empty()).then(|| Suppression {
        name: (*name).to_owned(),
        shipped: false,
        rules,
        lines,
    }))
}

/// The rules that find what a kind of Memcheck's is.
fn of_memcheck(kind: &str) -> &'static [&'static str] {
    match kind {
        "Addr1" | "Addr2" | "Addr4" | "Addr8" | "Addr16" | "Addr32" => &[
            "heap-overflow",
            "dangling-pointer",
            "null-pointer",
            "stack-overflow",
            "use-after-return",
        ],
        "Value1" | "Value2" | "Value4" | "Value8" | "Value16" | "Value32" | "Cond" => {
            &["uninitialised-read"]
        }
        "Param" => &["uninitialised-read", "unaddressable-buffer"],
        "Free" => &["double-free", "unmatched-free", "mismatched-free"],
        "Leak" => &["definite-leak", "possible-loss", "possible-leak", "leak-in-transaction"],
        "Overlap" => &["overlapping-copy"],
        "FishyValue" => &["bad-size"],
        _ => &[],
    }
}

/// The findings about threads that a kind of Helgrind's or drd's is.
fn of_helgrind(kind: &str) -> &'static [&'static str] {
    match kind {
        "Race" | "ConflictingAccess" => &["data-race", "unprotected-access"],
        "LockOrder" => &["lock-order", "deadlock"],
        _ => &[],
    }
}

/// Reads a file in either format: valgrind's has braces.
pub fn read_any(text: &str) -> Result<Vec<Suppression>, String> {
    match text.lines().any(|line| line.trim() == "{") {
        true => read(text),
        false => read_sanitizer(text),
    }
}

/// Reads lines of the thread sanitizer's, `race:PATTERN` and the like. A pattern is looked for in every frame's function and
/// file; `*` stands for anything, `^` and `$` for the ends. An error names the line.
pub fn read_sanitizer(text: &str) -> Result<Vec<Suppression>, String> {
    let mut found = Vec::new();
    let lines = (1..).zip(text.lines().map(str::trim));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let Some((kind, pattern)) = line.split_once(':') else {
            return Err(format!(
                "line {number}: expected KIND:PATTERN such as `race:old_*`, found `{line}`"
            ));
        };
        let rules: &[&str] = match kind {
            "race" | "race_top" => &["data-race", "unprotected-access"],
            "deadlock" => &["lock-order", "deadlock"],
            "thread" | "mutex" | "signal" | "called_from_lib" => continue,
            _ => {
                return Err(format!(
                    "line {number}: there is no kind `{kind}`; `race` and `deadlock` are known"
                ));
            }
        };
        let open = |text: &str| format!("*{text}*");
        let pattern = match (pattern.strip_prefix('^'), pattern.strip_suffix('$')) {
            (Some(_), Some(_)) => pattern[1..pattern.len() - 1].to_owned(),
            (Some(start), None) => format!("{start}*"),
            (None, Some(end)) => format!("*{end}"),
            (None, None) => open(pattern),
        };
        for last in [Line::Function(pattern.clone()), Line::Object(pattern)] {
            let before = (kind == "race").then_some(Line::Any);
            found.push(Suppression {
                name: line.to_owned(),
                shipped: false,
                rules: rules.iter().map(|&rule| rule.to_owned()).collect(),
                lines: before.into_iter().chain([last]).collect(),
            });
        }
    }
    Ok(found)
}

impl Suppression {
    /// Whether it speaks of a rule.
    #[must_use]
    pub fn is_about(&self, rule: &str) -> bool {
        self.rules.iter().any(|known| known == rule)
    }

    /// Whether a finding of a rule with this stack is not to be shown.
    #[must_use]
    pub fn covers(&self, rule: &str, stack: &[NamedFrame]) -> bool {
        self.is_about(rule) && matches(&self.lines, stack)
    }
}

/// Lines match the innermost frames; what is behind the last line does not matter.
fn matches(lines: &[Line], stack: &[NamedFrame]) -> bool {
    let Some((first, rest)) = lines.split_first() else { return true };
    let text = |text: &Option<String>, pattern: &str| {
        text.as_deref().is_some_and(|text| fits(pattern.as_bytes(), text.as_bytes()))
    };
    match (first, stack.split_first()) {
        (Line::Any, _) => (0..=stack.len()).any(|skipped| matches(rest, &stack[skipped..])),
        (_, None) => false,
        (Line::Function(pattern), Some((frame, outer))) => {
            text(&frame.function, pattern) && matches(rest, outer)
        }
        (Line::Object(pattern), Some((frame, outer))) => {
            text(&frame.object, pattern) && matches(rest, outer)
        }
    }
}

/// Whether a text fits a pattern with `*` and `?`, in time that grows with the product of both.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut star) = ((0, 0), None);
    while at.1 < text.len() {
        match pattern.get(at.0) {
            Some(b'*') => {
                star = Some(at);
                at.0 += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[at.1] => at = (at.0 + 1, at.1 + 1),
            _ => match star {
                // The star takes one more.
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    at = (place + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at.0..].iter().all(|byte| *byte == b'*')
}

/// A suppression for a finding, as text.
#[must_use]
pub fn write(rule: &str, stack: &[NamedFrame]) -> String {
    let mut out = format!("{{\n   <insert a name>\n   Whydunit:{rule}\n");
    for frame in stack {
        match (&frame.function, &frame.object) {
            (Some(function), _) => out += &format!("   fun:{function}\n"),
            (None, Some(object)) => out += &format!("   obj:{object}\n"),
            (None, None) => out += "   obj:*\n",
        }
    }
    out + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_shipped_file_is_read_and_covers_what_it_names() {
        let shipped = shipped();
        let text = include_str!("../../../../rules/harmless.supp");
        assert_eq!(shipped.len(), text.lines().filter(|line| line.trim() == "{").count());
        let is_covered =
            |rule: &str, names: &[&str]| shipped.iter().any(|one| one.covers(rule, &frames(names)));
        assert!(is_covered("dangling-pointer", &["address_in_range", "_PyObject_Free", "main"]));
        assert!(is_covered("uninitialised-read", &["address_in_range", "PyObject_Free"]));
        assert!(is_covered("possible-leak", &["_IO_file_doallocate", "_IO_doallocbuf", "puts"]));
        assert!(!is_covered("dangling-pointer", &["_PyObject_Free", "main"]));
        assert!(!is_covered("double-free", &["address_in_range", "main"]));
    }

    fn frames(names: &[&str]) -> Vec<NamedFrame> {
        let frame = |name: &&str| NamedFrame { function: Some((*name).to_owned()), object: None };
        names.iter().map(frame).collect()
    }

    #[test]
    fn valgrinds_suppressions_cover_the_rules_that_find_the_same() {
        let text = "# old\n{\n  x\n  Memcheck:Free\n  fun:free\n  ...\n  fun:old_*\n}\n\
                    {\n y\n Cachegrind:Miss\n fun:f\n}\n";
        let all = read(text).expect("in order");
        assert_eq!(all.len(), 1);
        assert!(all[0].covers("double-free", &frames(&["free", "a", "b", "old_api", "main"])));
        assert!(all[0].covers("double-free", &frames(&["free", "old_api"])));
        assert!(!all[0].covers("double-free", &frames(&["free", "a", "main"])));
        assert!(!all[0].covers("null-pointer", &frames(&["free", "old_api"])));
    }

    #[test]
    fn suppressions_of_thread_checkers_cover_findings_about_threads() {
        let helgrind =
            read("{\n y\n Helgrind:Race\n fun:f\n ...\n fun:old_*\n}\n").expect("in order");
        let sanitizer = read_sanitizer("# known\nrace:old_\ndeadlock:^take$\nrace_top:tally\n")
            .expect("in order");
        let is_covered = |all: &[Suppression], kind: &str, names: &[&str]| {
            all.iter().any(|one| one.covers(kind, &frames(names)))
        };
        assert!(is_covered(&helgrind, "data-race", &["f", "g", "old_api"]));
        assert!(!is_covered(&helgrind, "lock-order", &["f", "old_api"]));
        assert!(is_covered(&sanitizer, "data-race", &["f", "g", "the_old_api", "main"]));
        assert!(is_covered(&sanitizer, "lock-order", &["take"]));
        assert!(!is_covered(&sanitizer, "lock-order", &["take_two"]));
        assert!(is_covered(&sanitizer, "data-race", &["tally_up", "main"]));
        assert!(!is_covered(&sanitizer, "data-race", &["main", "tally_up"]));
        assert!(read_sanitizer("nothing\n").expect_err("no kind").contains("line 1"));
    }

    #[test]
    fn what_is_written_is_read_and_covers() {
        let stack = frames(&["free", "f", "main"]);
        let all = read(&write("double-free", &stack)).expect("our own");
        assert!(all[0].covers("double-free", &stack));
        assert!(!all[0].covers("double-free", &frames(&["free", "g", "main"])));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in [
            ("x\n", "line 1"),
            ("{\n n\n", "line 1"),
            ("{\n n\n Free\n}", "line 3"),
            ("{\n n\n Memcheck:Free\n what\n}", "line 4"),
            ("{\n}", "line 1"),
        ] {
            assert!(read(text).expect_err(text).contains(line), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn patterns_fit_what_an_obvious_matcher_fits(pattern in "[ab*?]{0,8}", text in "[ab]{0,8}") {
            fn slow(pattern: &[u8], text: &[u8]) -> bool {
                match (pattern.split_first(), text.split_first()) {
                    (None, None) => true,
                    (Some((b'*', rest)), _) if slow(rest, text) => true,
                    (Some((b'*', _)), Some((_, shorter))) => slow(pattern, shorter),
                    (Some((byte, rest)), Some((first, shorter))) => {
                        (*byte == b'?' || byte == first) && slow(rest, shorter)
                    }
                    _ => false,
                }
            }
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(fits(pattern, text), slow(pattern, text));
        }

        #[test]
        fn garbage_is_survived(text in "[{}a-z:.\n *]{0,200}") {
            let _ = read(&text);
        }
    }
}
