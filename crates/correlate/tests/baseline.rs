//! Changed trees against a baseline: an edit of one function, and what is reported then.

use correlate::baseline::Baseline;
use correlate::library::Library;
use correlate::rules::Options;
use correlate::tree::Silent;
use correlate::{Analysis, Request, analyse};

fn analysed(text: &str) -> Analysis {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("buf.c");
    std::fs::write(&path, text).expect("a file");
    let options = Options {
        min_support: 5,
        min_direct_support: 5,
        min_confidence: 0.6,
        ..Options::default()
    };
    let request = Request {
        // A folder, so that reports name the file alone.
        roots: vec![folder.path().to_path_buf()],
        library: Library::builtin(),
        options,
        max_file_size: 1 << 20,
        ..Request::default()
    };
    analyse(&request, &Silent).expect("a C file")
}

/// Just enough supporters: one less and there is no rule.
const BEFORE: &str = "
struct buf { char *data; int len, cap; };
static void note(struct buf *b) { b->cap++; }
void one(struct buf *b, char *d, int n) { b->data = d; b->len = n; }
void two(struct buf *b, char *d) { b->data = d; b->len = 2; note(b); }
void three(struct buf *b, char *d) { memset(b, 0, sizeof(*b)); b->len = 3; b->data = d; }
void four(struct buf *b, char *d) { if (b->len > 4) return; b->data = d; b->len = 4; }
void five(struct buf *b, char *d) { if (d) { b->data = d; b->len = 5; } else { b->data = 0; b->len = 0; } }
";

/// The complaints about BEFORE with `from` replaced by `to`.
fn complaints(from: &str, to: &str) -> Vec<String> {
    complaints_of(BEFORE, from, to)
}

fn complaints_of(text: &str, from: &str, to: &str) -> Vec<String> {
    let before = analysed(text);
    assert!(before.violations.is_empty(), "the baseline is clean");
    let baseline = Baseline::of(&before);
    // Reports are JSON in between.
    let stored = serde_json::to_string(&baseline).expect("plain data");
    let baseline = serde_json::from_str(&stored).expect("what was written");
    assert!(text.contains(from), "{from}");
    let mut after = analysed(&text.replace(from, to));
    after.against(&baseline);
    after.findings().into_iter().map(|it| it.title).collect()
}

#[test]
fn a_deleted_update_is_found_though_it_takes_its_rule_along() {
    let gone = "updates buf::data but no longer updates buf::len";
    for (from, to, function) in [
        (" b->len = n;", "", "one"),
        (" b->len = 2;", "", "two"),
        // The whole struct is zeroed before, the variable is read before: both once hid it.
        (" b->len = 3;", "", "three"),
        (" b->len = 4;", "", "four"),
    ] {
        let alone = analysed(&BEFORE.replace(from, to));
        assert!(alone.findings().is_empty(), "without the baseline there is no rule");
        assert_eq!(complaints(from, to), [format!("{function} {gone}")]);
    }
    let less = "five updates buf::data but updates buf::len in fewer places than before";
    assert_eq!(complaints(" b->len = 0;", ""), [less]);
}

#[test]
fn what_moved_or_went_altogether_is_not_lost() {
    let nothing: [String; 0] = [];
    assert_eq!(complaints("b->data = d; b->len = n;", ""), nothing, "both are gone");
    assert_eq!(complaints("b->len = 2;", "b->len = 3;"), nothing, "another value");
    assert_eq!(complaints("void two", "\n\nvoid two"), nothing, "moved down");
    let helper = "static void size(struct buf *b) { b->len = 2; }\nvoid two";
    let moved = BEFORE.replace("void two", helper).replace("d; b->len = 2;", "d; size(b);");
    let mut after = analysed(&moved);
    after.against(&Baseline::of(&analysed(BEFORE)));
    assert!(after.findings().is_empty(), "moved into a function that it calls");
}

#[test]
fn stored_rules_are_held_against_new_code() {
    let new = "void six(struct buf *b, char *d) { b->data = d + 6; b->cap = 1; }\nvoid two";
    let expected = "six updates buf::data but neither updates nor checks buf::len";
    assert_eq!(complaints("void two", new), [expected]);
    // The same with too few supporters left for a rule.
    let fewer = analysed(&BEFORE.replace("void two", new).replace("void four", "void five_"));
    let mut fewer = Analysis::new(fewer.tree, Options::default(), &Silent);
    assert!(fewer.rules.is_empty());
    fewer.against(&Baseline::of(&analysed(BEFORE)));
    let titles: Vec<_> = fewer.findings().into_iter().map(|it| it.title).collect();
    assert_eq!(titles, [expected]);
    let evidence = &fewer.findings()[0].evidence[0];
    assert!(evidence.text.contains("held in 5 of 5 functions of the baseline"), "{evidence:?}");
}

/// The baseline knows alternatives of one name in a file as one function.
#[test]
fn an_update_lost_in_one_alternative_is_found() {
    let six = "\n#ifdef SHORT\nvoid six(struct buf *b, char *d) { b->data = d; b->len = 6; }\n#else\n\
               void six(struct buf *b, char *d) { b->data = d + 1; b->len = 7; }\n#endif\n";
    let found = complaints_of(&format!("{BEFORE}{six}"), " b->len = 7;", "");
    assert_eq!(found, ["six updates buf::data but updates buf::len in fewer places than before"]);
}
