//! Small programs in the shapes of real bugs. A comment `BUG: Type::field` marks the line where a
//! finding is expected, `EXCEPTION VALUE: …` one whose value may explain it; nothing else may be
//! reported.

use correlate::explain::{Conformance, read_rule, sites};
use correlate::library::Library;
use correlate::rules::{BySize, Options};
use correlate::tree::Silent;
use correlate::violations::Exception;
use correlate::{Analysis, Request, analyse};
use std::path::{Path, PathBuf};

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The programs are small, so are the thresholds.
fn analysed(path: PathBuf) -> Analysis {
    let options = Options {
        min_support: 5,
        min_direct_support: 5,
        min_confidence: 0.6,
        ..Options::default()
    };
    let request = Request {
        roots: vec![path],
        library: Library::builtin(),
        options,
        max_file_size: 1 << 20,
        ..Request::default()
    };
    let mut analysis = analyse(&request, &Silent).expect("a C file");
    analysis.suppress(&[]);
    analysis
}

fn marks(text: &str) -> Vec<String> {
    let mark = |(index, line): (usize, &str)| {
        let at = line.find("BUG").or_else(|| line.find("EXCEPTION "))?;
        Some(format!("{} {}", index + 1, line[at..].trim_end_matches("*/").trim()))
    };
    text.lines().enumerate().filter_map(mark).collect()
}

fn found(analysis: &Analysis) -> Vec<String> {
    let mut found: Vec<_> = analysis
        .violations
        .iter()
        .map(|it| {
            let word = match it.exception {
                None if it.is_unset => "BUG uninitialised".to_string(),
                None => "BUG".to_string(),
                Some(Exception::Value(value, _) | Exception::OtherValue(value)) => {
                    format!("EXCEPTION {}", analysis.tree.names.text(value))
                }
                Some(Exception::Manner) => "EXCEPTION manner".to_string(),
                Some(Exception::Existing) => "EXCEPTION existing".to_string(),
                Some(Exception::Single) => "EXCEPTION single".to_string(),
                Some(Exception::ZeroMeant) => "EXCEPTION zero".to_string(),
                Some(Exception::Relink) => "EXCEPTION relink".to_string(),
                Some(Exception::Neighbour) => "EXCEPTION neighbour".to_string(),
            };
            let line = it.broken.iter().map(|(_, line)| *line).min().expect("never empty");
            (line, format!("{line} {word}: {}", analysis.graph.shown(&analysis.tree, it.missing)))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn every_marked_line_is_found_and_nothing_else() {
    let names = [
        "rx_bytes.c",
        "colours.c",
        "duplex.c",
        "table_empty.c",
        "db_length.cpp",
        "excused.c",
        "branches.c",
        "origins.c",
        "exception.c",
        "manner.c",
        "peers.c",
        "zeroed.c",
        "around.c",
        "meant.c",
        "landings.c",
    ];
    for name in names {
        let path = program(name);
        let text = std::fs::read_to_string(&path).expect("the program is there");
        let analysis = analysed(path);
        assert!(!analysis.rules.is_empty(), "{name}: no rule at all");
        assert_eq!(found(&analysis), marks(&text), "in {name}");
    }
}

/// Small trees have lower thresholds, where none are given.
#[test]
fn thresholds_depend_on_the_size_of_the_tree() {
    let given = Options { min_support: 7, ..Options::default() };
    let small = BySize::ALL.apply(given, BySize::SMALL - 1);
    let shown = (small.min_support, small.min_direct_support, small.min_confidence);
    assert_eq!(shown, (4, 3, 0.65));
    assert_eq!(BySize::ALL.apply(given, BySize::SMALL), given);
    assert_eq!(BySize::default().apply(given, 1), given);
}

/// Who is excused from a rule, and why.
#[test]
fn every_excuse_is_told_with_its_reason() {
    use correlate::conformance::Reason::*;
    let rows = [
        (
            "excused.c",
            "write(buf::data) => any(buf::len)",
            vec![
                ("zeroed", Zeroed),
                ("assigned", Assigned),
                ("fresh", Zeroed),
                ("ended", Freed),
                ("unseen", Dead),
                ("set_data", Setter),
            ],
        ),
        (
            "around.c",
            "write(buf::data) => any(buf::len)",
            vec![
                ("callee_sets", SetByCallee),
                ("constructor_sets", SetByCallee),
                ("attach", SetByCallers),
                ("turn_page", Assigned),
                ("member_assigned", Assigned),
                ("set_data", Setter),
            ],
        ),
        (
            "branches.c",
            "write(item::key) => write(item::value)",
            vec![("either", Alternatives), ("cases", Alternatives), ("restores", Restores)],
        ),
        ("around.c", "write(buf::cap) => any(buf::small)", vec![("variant", Variant)]),
        (
            "landings.c",
            "write(log::state) => write(log::sent)",
            vec![("after_the_last_jump", Alternatives), ("through_two_labels", Alternatives)],
        ),
    ];
    for (name, rule, expected) in rows {
        let analysis = analysed(program(name));
        let rule = read_rule(&analysis, rule).expect("a rule");
        let sites = sites(&analysis, &rule);
        for (function, reason) in expected {
            let site = sites.iter().find(|it| analysis.function_name(it.function) == function);
            let conformance = site.map(|it| it.conformance);
            assert_eq!(conformance, Some(Conformance::Excused(reason)), "{function} in {name}");
        }
    }
}

/// Of a struct that everybody uses, the fields of a member are variables of their own.
#[test]
fn the_fields_of_a_member_belong_together_where_the_struct_is_popular() {
    let path = program("members.c");
    let text = std::fs::read_to_string(&path).expect("the program is there");
    let analysis = analysed(path);
    let whole = "write(session::name.text) => write(session::name.length)";
    let shown = |analysis: &Analysis| -> Vec<String> {
        analysis.rules.iter().map(|rule| analysis.shown(rule)).collect()
    };
    assert!(!shown(&analysis).contains(&whole.to_string()));
    let plain = "write(str::text) => write(str::length)";
    assert!(shown(&analysis).contains(&plain.to_string()), "{:?}", shown(&analysis));
    let options = Options { max_popularity: 8, ..analysis.options };
    let analysis = Analysis::new(analysis.tree, options, &Silent);
    assert!(shown(&analysis).contains(&whole.to_string()), "{:?}", shown(&analysis));
    assert!(!shown(&analysis).contains(&plain.to_string()));
    assert_eq!(found(&analysis), marks(&text));
    // The same tree with the former bound gives the former variables.
    let options = Options { max_popularity: 400, ..analysis.options };
    let analysis = Analysis::new(analysis.tree, options, &Silent);
    assert!(shown(&analysis).contains(&plain.to_string()));
}

/// `a->b->c` goes through `b`: that is no rule about `b` and `c`.
#[test]
fn the_way_to_a_field_is_no_rule() {
    let analysis = analysed(program("paths.c"));
    let shown: Vec<_> = analysis.rules.iter().map(|rule| analysis.shown(rule)).collect();
    let has = |rule: &str| shown.iter().any(|it| it == rule);
    assert!(has("write(inner::x) => write(inner::y)"), "{shown:?}");
    let leads_back = |it: &&String| it.contains("(inner::") && !it.ends_with("(inner::x)");
    let back: Vec<_> = shown.iter().filter(leads_back).collect();
    assert!(back.iter().all(|it| it.ends_with("(inner::y)")), "{back:?}");
}

#[test]
fn exceptions_are_ranked_last() {
    let analysis = analysed(program("exception.c"));
    let exceptions: Vec<_> = analysis.violations.iter().map(|it| it.exception.is_some()).collect();
    assert_eq!(exceptions, [false, true, true]);
}

/// In both programs the unlikelier one stands first, so that it would win a tie.
#[test]
fn the_manner_of_the_write_and_the_peers_decide_between_violators() {
    for (name, expected) in
        [("manner.c", ["from_host", "move_on"]), ("peers.c", ["reopen", "share"])]
    {
        let analysis = analysed(program(name));
        let ranked = analysis.violations.iter().map(|it| analysis.function_name(it.function));
        assert_eq!(ranked.collect::<Vec<_>>(), expected, "in {name}");
    }
}

#[test]
fn copies_of_a_macro_or_an_inline_function_count_once() {
    let analysis = analysed(program("copies.c"));
    let shown: Vec<_> = analysis.rules.iter().map(|rule| analysis.shown(rule)).collect();
    assert!(shown.is_empty(), "{shown:?}");
}

#[test]
fn two_variables_on_the_left_say_what_neither_says_alone() {
    let analysis = analysed(program("two_left.c"));
    let shown: Vec<_> = analysis.rules.iter().map(|rule| analysis.shown(rule)).collect();
    let both = "write(stream::seekable) & write(stream::sized) => write(stream::length)";
    assert!(shown.iter().any(|rule| rule == both), "{shown:?}");
    let alone = |left: &str| format!("write(stream::{left}) => write(stream::length)");
    assert!(!shown.contains(&alone("seekable")) && !shown.contains(&alone("sized")), "{shown:?}");
}

#[test]
fn three_variables_on_the_left_are_mined_on_demand() {
    let all = "write(stream::seekable) & write(stream::sized) & write(stream::cached) => write(stream::length)";
    for (max_left, expected) in [(2, false), (3, true), (4, true)] {
        let analysis = analysed(program("three_left.c"));
        let options = Options { max_left, ..analysis.options };
        let analysis = Analysis::new(analysis.tree, options, &Silent);
        let shown: Vec<_> = analysis.rules.iter().map(|rule| analysis.shown(rule)).collect();
        assert_eq!(shown.iter().any(|it| it == all), expected, "{max_left}: {shown:?}");
        let most = analysis.rules.iter().map(|rule| rule.left.len()).max().unwrap_or(0);
        assert!(most <= max_left as usize, "{most}");
    }
}

#[test]
fn the_rule_reads_as_in_reports() {
    let analysis = analysed(program("rx_bytes.c"));
    let shown: Vec<_> = analysis.rules.iter().map(|rule| analysis.shown(rule)).collect();
    let rule = "write(net_stats::rx_bytes) => write(net_stats::rx_packets)".to_string();
    assert!(shown.contains(&rule), "{shown:?}");
}
