//! The rule language: what is accepted, what is refused and how, and that garbage is survived.

use analyze::rules::language::{self, ast, parser, printer};
use analyze::rules::model::{Condition, Point, Rule};
use analyze::rules::needs::Needs;
use analyze::rules::screen::{PointerState, Screen, Situation};
use analyze::rules::shipped;
use proptest::prelude::*;
use spec::{Diagnostics, Source};

fn read(text: &str) -> Result<Vec<Rule>, String> {
    let source = Source::new("t.rule", text);
    language::read(&source).map_err(|errors| errors.render(&source, false))
}

fn shipped(name: &str) -> Rule {
    let found = shipped::rules().into_iter().find(|rule| rule.name == name);
    found.unwrap_or_else(|| panic!("no shipped rule {name}"))
}

#[test]
fn every_shipped_file_is_in_order() {
    for (name, text) in shipped::FILES {
        let source = Source::new(name, text);
        let read = language::read(&source);
        assert!(read.is_ok(), "{}", read.unwrap_err().render(&source, false));
    }
    assert!(shipped::rules().len() >= 16);
}

#[test]
fn the_double_free_of_the_reference_reads_as_it_is_printed_there() {
    let text = "\
define Allocated(r) = exists event(_, malloc, _, bid) in Trace such that (bid == Bid(r))
define Freed(r, r1) = exists event(_, free, r1, bid) in Trace such that (bid == Bid(r))
[double_free] detect <Trace; free r>: Allocated(r) && Freed(r, r1) : VPC(r), VPC(r1)
";
    let rules = read(text).expect("in order");
    assert_eq!(rules[0].name, "double-free");
    assert_eq!(rules[0].point, Point::Free);
    let followed = |slot: &usize| rules[0].variables[*slot].name.as_str();
    assert_eq!(rules[0].locators.iter().map(followed).collect::<Vec<_>>(), ["r", "r1"]);
    let Condition::And(parts) = &rules[0].condition else { panic!("not a conjunction") };
    for part in parts {
        let Condition::OverTrace(_, event, _) = part else { panic!("not over the trace") };
        assert!(event.key.is_some(), "the trace would be searched instead of looked up");
    }
}

#[test]
fn errors_point_at_the_text_and_say_what_would_be_right() {
    let rule = |condition: &str| format!("[x] detect <Trace; free r>: {condition}");
    let cases = [
        (rule("Bld(r) == Bid(r)"), "did you mean `Bid`?"),
        (rule("exists event(_, mallok, _, b) in Trace"), "did you mean `malloc`?"),
        (rule("exists b in Heep"), "did you mean `Heap`?"),
        (rule("exists b in Heap"), "write `detect <Heap; …>`"),
        (rule("Bid(r) == r"), "write `Bid(r)`"),
        (rule("Bid(r) < Bid(r)"), "expected `==` or `!=`"),
        (rule("Bid(r)"), "compare it: `Bid(r) == …`"),
        (rule("k == 3"), "nothing has given `k` a value"),
        (rule("k > 3 && FindLast(k, call, f, _)"), "put that before this"),
        (rule("r == NULL : VPC(q)"), "unknown variable `q`"),
        (rule("FindLast(k, call, f, _) : VPC(k)"), "expected a pointer"),
        (rule("!FindLast(_, free, q, _) : VPC(q)"), "VPC(q)"),
        (rule("exists event(_, free) in Trace"), "expected (time, free, a pointer, a block)"),
        (rule("_ == r"), "`_` stands for anything, and only in patterns"),
        (rule("(r == NULL"), "expected `)` to close the parenthesis"),
        ("[x] detect <Trace; fre r>: r == NULL".into(), "did you mean `free`?"),
        ("[x] detect <Trace; free>: 1 == 1".into(), "expected `free r`"),
        ("[x] detect <Trace; call>: 1 == 1".into(), "expected `call FUNCTION v`"),
        ("define A(r) = A(r)\n[x] detect <free r>: A(r)".into(), "before it is defined"),
        ("define A(r) = r == NULL\n[x] detect <free r>: A()".into(), "expected `A(r)`"),
        ("[x] detect <free r>: r == NULL\n[x] detect <free r>: r == NULL".into(), "given twice"),
        ("free r".into(), "expected `define NAME(…) = …`"),
        (rule(&"(".repeat(5000)), "nests too deeply"),
        (rule(&"!".repeat(5000)), "nests too deeply"),
        (rule(&format!("r{} == r", " + 1".repeat(5000))), "nests too deeply"),
    ];
    for (text, expected) in cases {
        let shown = read(&text).expect_err(&text);
        assert!(shown.contains("t.rule:"), "no place in\n{shown}");
        assert!(shown.contains(expected), "{expected:?} is missing from\n{shown}");
    }
}

#[test]
fn definitions_that_double_each_other_are_bounded() {
    let mut text = String::from("define D0(r) = r == NULL\n");
    for level in 1..30 {
        let before = level - 1;
        text += &format!("define D{level}(r) = D{before}(r) && D{before}(r)\n");
    }
    let shown = read(&(text + "[x] detect <free r>: D29(r)")).expect_err("far too large");
    assert!(shown.contains("grows too large"), "{shown}");
}

#[test]
fn one_run_reports_every_broken_rule() {
    let shown = read("[a] detect <free r>: ==\n[b] detect <free r>: )\n").expect_err("both");
    assert_eq!(shown.matches("error:").count(), 2, "{shown}");
}

#[test]
fn what_a_rule_needs_follows_from_what_it_asks() {
    let needs = |name: &str| Needs::of(&shipped(name));
    for name in ["double-free", "unmatched-free", "mismatched-free", "possible-leak"] {
        let needs = needs(name);
        assert!(needs.allocations && !needs.accesses && !needs.pointers, "{name}: {needs:?}");
    }
    assert!(!needs("null-pointer").pointers && needs("null-pointer").accesses);
    assert!(needs("heap-overflow").pointers && needs("definite-leak").pointers);
    assert!(needs("leak-in-transaction").functions.contains("transaction"));
    assert!(needs("collector-marks").contents);
    assert!(needs("use-after-close").descriptors && !needs("use-after-close").allocations);
}

#[test]
fn ordinary_accesses_need_no_evaluation() {
    let at = |pointer_state, written| Situation { pointer_state, written };
    for rule in shipped::rules() {
        let screen = Screen::of(&rule);
        assert!(!screen.admits(at(PointerState::Inside, true)), "{}", rule.name);
    }
    let admitted = |name: &str| -> Vec<PointerState> {
        let screen = Screen::of(&shipped(name));
        PointerState::ALL
            .into_iter()
            .filter(|&pointer_state| screen.admits(at(pointer_state, true)))
            .collect()
    };
    assert_eq!(admitted("null-pointer"), [PointerState::Null]);
    assert_eq!(admitted("dangling-pointer"), [PointerState::Freed]);
    assert_eq!(admitted("use-after-return"), [PointerState::Freed]);
    assert!(admitted("heap-overflow").contains(&PointerState::Outside));
    assert!(Screen::of(&shipped("uninitialised-read")).looks_at_writes());
    assert!(Screen::of(&shipped("uninitialised-read")).admits(at(PointerState::Inside, false)));
}

/// Names, rarely a word of the language.
fn name() -> impl Strategy<Value = String> + Clone {
    prop_oneof![Just("r".into()), Just("bid".into()), Just("_".into()), "[a-z]{1,3}x"]
}

fn condition() -> impl Strategy<Value = String> {
    let term = prop_oneof![
        name(),
        (0i64..100).prop_map(|number| number.to_string()),
        Just("NULL".to_owned()),
        ("(Bid|Begin|End|Size|Value)", name()).prop_map(|(f, of)| format!("{f}({of})")),
    ];
    let compared = (term.clone(), "(==|!=|<|<=|>|>=)", term)
        .prop_map(|(left, relation, right)| format!("{left} {relation} {right}"));
    let event = (name(), name()).prop_map(|(r, b)| format!("(_, free, {r}, {b})"));
    let leaf = prop_oneof![compared, event.clone().prop_map(|event| format!("FindLast{event}"))];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|all| format!("({})", all.join(" && "))),
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|all| format!("({})", all.join(" || "))),
            inner.clone().prop_map(|one| format!("!({one})")),
            (event.clone(), inner.clone())
                .prop_map(|(event, one)| format!("exists event{event} in Trace such that ({one})")),
            (name(), inner).prop_map(|(x, one)| format!("forall {x} in Heap such that ({one})")),
        ]
    })
}

fn tree(text: &str) -> ast::File {
    let mut errors = Diagnostics::default();
    let tree = parser::parse(&Source::new("t", text), &mut errors);
    assert!(errors.is_empty(), "{}", errors.render(&Source::new("t", text), false));
    tree
}

proptest! {
    #[test]
    fn what_is_printed_reads_as_the_same_tree(condition in condition(), title in "[ -~]{0,8}") {
        let title = title.replace(['\\', '"'], "");
        let text = format!("[x] \"{title}\" detect <Heap; Trace; free r>: {condition} : VPC(r)");
        let printed = printer::print(&tree(&text));
        prop_assert_eq!(printer::print(&tree(&printed)), printed);
    }

    #[test]
    fn any_condition_is_accepted_or_refused_with_a_place(condition in condition()) {
        match read(&format!("[x] detect <Heap; Trace; free r>: {condition}")) {
            Ok(rules) => prop_assert_eq!(rules.len(), 1),
            Err(shown) => prop_assert!(shown.contains("t.rule:")),
        }
    }

    #[test]
    fn garbage_is_survived(text in "[\\[\\]<>(){}:;,&|!=a-z_ \n\"0-9]{0,300}") {
        let _ = read(&text);
    }

    #[test]
    fn torn_rule_files_are_survived(cut in 0usize..2000, length in 0usize..60) {
        let text = shipped::FILES[0].1;
        let (start, end) = (cut.min(text.len()), (cut + length).min(text.len()));
        if let (Some(before), Some(after)) = (text.get(..start), text.get(end..)) {
            let _ = read(&format!("{before}{after}"));
        }
    }
}
