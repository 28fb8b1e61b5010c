//! The language: every mistake is reported at its place, what is printed parses to the same, and
//! no text at all makes the reader panic or hang.

#[path = "support/generate.rs"]
mod generate;

use generate::{Choices, specification};
use linearize::language::{parser, printer, read};
use proptest::prelude::*;
use spec::diagnostic::SHOWN;
use spec::{Diagnostics, Source};

fn errors(text: &str) -> Vec<(usize, usize, String)> {
    let source = Source::new("test", text);
    let Err(errors) = read(&source) else { return Vec::new() };
    let place = |error: &&spec::Diagnostic| source.position(error.span.start);
    errors
        .sorted()
        .iter()
        .take(SHOWN)
        .map(|error| {
            let at = place(error);
            (at.line, at.column, error.message.clone())
        })
        .collect()
}

/// One mistake a row: the text, and line, column and message of its only error.
#[test]
fn mistakes_are_reported_where_they_are() {
    let rows = [
        ("", 1, 1, "the specification has no operations"),
        ("int a;\nOp()", 2, 1, "the operation `Op` has no sub-operations"),
        ("int a;\nOp() 1 b = 1;", 2, 8, "unknown variable `b`"),
        ("int a;\nOp() 1 a = NULL;", 2, 12, "NULL where int is needed"),
        ("struct n { int v };\nn a;\nOp() 1 a = 1;", 3, 12, "int where n is needed"),
        ("struct n { int v };\nn a;\nOp() 1 a.w = 1;", 3, 10, "unknown field of n `w`"),
        (
            "struct n { int v };\nn a;\nOp() 1 <a < a;>",
            3,
            9,
            "references have no order, but `<` asks for one",
        ),
        ("int a;\nOp() 1 a.v = 1;", 2, 10, "a number has no field `v`"),
        ("int a[];\nOp() 1 a = 1;", 2, 8, "`a` is an array"),
        ("int a;\nOp() 1 a[0] = 1;", 2, 8, "`a` is not an array"),
        ("int a;\nOp() int b[]; 1 a = 1;", 2, 10, "the local variable `b` cannot be an array"),
        ("int a;\nint a;\nOp() 1 a = 1;", 2, 5, "the shared variable `a` is declared twice"),
        ("int a;\nOp(int a) 1 a = 1;", 2, 8, "`a` is declared twice"),
        ("int a;\nOp() 1 a = 1;\nOp() 1 a = 2;", 3, 1, "the operation `Op` is given twice"),
        ("int a;\nOp() 1 a = 1; 1 loop <a < 3;> a = 2;", 2, 15, "`Op` ends with a loop"),
        (
            "int a;\nOp() 1 loop a = 1; 1 loop a = 2; 1 loop a = 3; 1 a = 4;",
            2,
            34,
            "`Op` has 3 loops",
        ),
        ("int a;\nOp() 1 loop b = 1; 1 a = 2;", 2, 13, "unknown variable `b`"),
        (
            "int a;\nOp/x(int k) 1 a = 1;\nOp/y() 1 a = 2;",
            3,
            1,
            "the roles of `Op` take different arguments",
        ),
        (
            "int a;\nOp() 2 a = 1;",
            2,
            6,
            "expected a thread mark: `1` (own thread) or `*` (any thread), found `2`",
        ),
        (
            "int a;\nOp() 1 a = 1",
            2,
            13,
            "expected `;` to end the statement, found the end of the file",
        ),
        (
            "int a;\nOp() 1 <a = 1;>",
            2,
            11,
            "expected a comparison: `==`, `!=`, `<`, `<=`, `>` or `>=`, found `=`",
        ),
        ("int a;\nOp() 1 a = 99999999999;", 2, 12, "the number is too large"),
        (
            "int a;\nOp() 1 a = malloc int;",
            2,
            19,
            "expected the name of a struct to allocate, found `int`",
        ),
        ("int a;\ninit a = ID;\nOp() 1 a = 1;", 2, 10, "`ID` outside an operation"),
        ("int a;\ninit return a;\nOp() 1 a = 1;", 2, 13, "`return` outside an operation"),
        ("int a;\nOp(int k) 1 k = 1;", 2, 13, "the argument `k` cannot be changed"),
        (
            "int a;\ninvariant (int i, int j, int k, int l) a == 0;\nOp() 1 a = 0;",
            2,
            1,
            "an invariant about 4 things",
        ),
        ("int a; /* open\nOp() 1 a = 1;", 1, 8, "a comment is never closed"),
    ];
    for (text, line, column, message) in rows {
        assert_eq!(errors(text), [(line, column, message.to_owned())], "in\n{text}");
    }
}

/// What people write who think in C gets one error, and a hint what to write instead.
#[test]
fn words_of_other_languages_get_a_hint() {
    let rows = [
        ("int a;\nOp() 1 if (a == 0) a = 1;", "the language has no `if`", "as a role"),
        ("int a;\nOp() if (a == 0) 1 a = 1;", "the language has no `if`", "as a role"),
        ("int a;\nOp() 1 while (a != 0) a = 1;", "the language has no `while`", "last round"),
        ("int a;\nOp() 1 <a == 0 && a != 1;> a = 1;", "`&&` does not join conditions", "by `;`"),
        ("int a;\nOp() 1 <a == 0 || a == 1;> a = 1;", "`||` does not join conditions", "one role"),
        ("int a;\nOp() 1 a++;", "the language has no `++`", "a = a + 1;"),
        ("int a;\nOp() 1 a += 2;", "the language has no `+=`", "a = a + 1;"),
        ("int a;\nOp() 1 a = a % 0;", "a rest needs a divisor of 1 or more", "positive"),
        ("int a\nint b;\nOp() 1 a = b;", "`;` is missing after `a`", "to end the declaration"),
        ("int a;\nOp() int x 1 x = a;", "`;` is missing after `x`", "to end the declaration"),
        (
            "struct n { int v };\nn a\nOp() 1 a = NULL;",
            "`;` is missing after `a`",
            "to end the declaration",
        ),
        ("int a;\nabstract heap;\nOp() 1 a = 1;", "unknown object `heap`", "known object"),
        ("int a;\nabstract queue;\nOp() 1 a = 1;", "a queue has no operation `Op`", "usual names"),
        ("int a;\nOp() 1 a = ID % 2;", "`ID` only tells operations apart", "computed with"),
    ];
    for (text, message, hint) in rows {
        let found = errors(text);
        assert_eq!(found.len(), 1, "{found:?} in\n{text}");
        assert_eq!(found[0].2, message, "in\n{text}");
        let source = Source::new("test", text);
        let shown = read(&source).map(|_| ()).unwrap_err().render(&source, false);
        assert!(shown.contains(hint), "{hint:?} is missing from\n{shown}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported() {
    let text = "struct n { nod v };\nint a;\nOp()\n  1 b = 1;\n  3 a = 1;\n  1 a = = 2;\n  1 <a > c> a = NULL;\nE()\n";
    let lines: Vec<_> = errors(text).into_iter().map(|(line, _, _)| line).collect();
    assert_eq!(lines, [1, 4, 5, 6, 7, 7, 8]);
}

#[test]
fn the_syntax_of_the_reference_is_understood() {
    // Figure 6.4 as it is printed there, but for the initial state.
    let text = "struct node{int value, node next};\nstruct queue{node head, node tail};\nqueue Q;\n\
        Enqueue (int val)\nnode X;\nnode Z;\n1 X = malloc node;\n1 X.value = val;\n1 X.next = NULL;\n\
        1 < Q.tail == Z; Z.next == NULL;> Z.next = X;\n* < Q.tail == Z> Q.tail = X;\n\
        Dequeue_nonempty()\nnode X;\n1 < Q.head == X; Q.tail ≠ X; X.next ≠ NULL;> Q.head = X.next;\n\
        1 free X;\nDequeue_empty node X; 1 < Q.head == X; Q.tail == X; X.next == NULL;>\n";
    let program = read(&Source::new("figure", text)).unwrap();
    let shape: Vec<_> =
        program.operations.iter().map(|one| (one.title(), one.steps.len())).collect();
    let expected = [("Enqueue", 5), ("Dequeue_nonempty", 2), ("Dequeue_empty", 1)];
    assert_eq!(shape, expected.map(|(name, steps)| (name.to_owned(), steps)));
}

#[test]
fn garbage_and_deep_nesting_end_in_errors() {
    let deep = format!("int a;\nOp()\n 1 a{} = 1;", ".b".repeat(300_000));
    let garbage: String = (0_u32..1 << 20)
        .map(|at| {
            char::from(b' ' + u8::try_from(at.wrapping_mul(2_654_435_761) >> 25).unwrap() % 95)
        })
        .collect();
    for text in [deep, garbage, "(".repeat(1 << 20), "<".repeat(1 << 20), "Op/".repeat(1 << 18)] {
        assert!(!errors(&text).is_empty());
    }
}

fn printed(text: &str) -> String {
    let mut errors = Diagnostics::default();
    let tree = parser::parse(&Source::new("test", text), &mut errors);
    assert!(errors.is_empty(), "{}\n{text}", errors.render(&Source::new("test", text), false));
    printer::print(&tree)
}

proptest! {
    #[test]
    fn what_is_printed_parses_to_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let text = specification(&mut Choices::new(&bytes));
        let once = printed(&text);
        prop_assert_eq!(printed(&once), once.clone());
        // Same meaning: the same sub-operations under the same names.
        let steps = |text: &str| {
            let program = read(&Source::new("test", text)).unwrap();
            let all = program.operations.into_iter().flat_map(|operation| operation.steps);
            all.map(|step| step.text).collect::<Vec<_>>()
        };
        prop_assert_eq!(steps(&text), steps(&once));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = errors(&text);
    }

    #[test]
    fn any_sequence_of_tokens_is_read_or_refused(
        tokens in proptest::collection::vec(proptest::sample::select(TOKENS), 0..80)
    ) {
        let _ = errors(&tokens.join(" "));
    }

    #[test]
    fn a_specification_with_a_hole_is_read_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..120), from in 0_usize..400, length in 0_usize..20
    ) {
        let text = specification(&mut Choices::new(&bytes));
        let (from, to) = (from.min(text.len()), (from + length).min(text.len()));
        let _ = errors(&format!("{}{}", &text[..from], &text[to..]));
    }
}

const TOKENS: &[&str] = &[
    "struct",
    "int",
    "init",
    "invariant",
    "malloc",
    "free",
    "READ",
    "return",
    "ID",
    "NULL",
    "a",
    "b",
    "node",
    "Op",
    "1",
    "*",
    "0",
    "7",
    "<",
    ">",
    "==",
    "!=",
    "=",
    "=>",
    ";",
    ",",
    ".",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "/",
    "+",
    "-",
    "\n",
];

/// An abstract object that is written out is part of what is printed, and means the same when read
/// again.
#[test]
fn a_written_object_is_printed_and_read_again() {
    let text = "abstract { int n; init n = 3; invariant n > 0; Next() 1 n = n + 1; return n; }
        int c; init c = 3; Next() 1 c = c + 1; return c;";
    let once = printed(text);
    assert_eq!(printed(&once), once);
    for text in [text, &once] {
        let program = read(&Source::new("test", text)).unwrap();
        let object = program.object.expect("an object");
        assert_eq!(object.operations[0].steps[0].text, "1 n = n + 1; return n;");
        assert_eq!((object.invariants.len(), object.init.body.len()), (1, 1));
        assert_eq!((program.operations.len(), program.invariants.len()), (1, 0));
    }
}

/// A loop is as many paths as it is followed for, and printed as it was written.
#[test]
fn loops_are_paths() {
    let text =
        "int a;\nint loop;\nOp() int x; 1 x = a; 1 loop <x < 3;> x = x + 1; 1 loop = x; return x;";
    let program = read(&Source::new("loop", text)).expect("no errors");
    let steps: Vec<usize> = program.operations.iter().map(|one| one.steps.len()).collect();
    assert_eq!(steps, [2, 3, 4, 5]);
    assert_eq!(program.rounds, Some(3));
    assert_eq!(program.operations[2].title(), "Op/2 rounds");
    assert_eq!(program.operations[2].steps[1].text, "1 loop <x < 3;> x = x + 1;");
}
