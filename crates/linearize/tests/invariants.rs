//! Stated invariants are checked before they are used, and pairs are judged by case.

use linearize::explore::search::Bound;
use linearize::language::read;
use linearize::model::Program;
use linearize::proof::invariants::believe;
use linearize::proof::pairs::derive;
use linearize::proof::prefixes;
use linearize::symbolic::claims::Effort;
use linearize::{Verdict, judge};
use spec::Source;

fn program(text: &str) -> Program {
    let source = Source::new("test", text);
    read(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source, false)))
}

const LIST: &str = "struct node { int key, node next };\nnode Head;\n\
    init node D; D = malloc node; Head = D;\n";

/// An invariant, an operation, and whether the invariant is believed.
#[test]
fn invariants_are_believed_only_if_they_are_preserved() {
    let rows = [
        ("invariant (node n) n.key >= 0;", "Op() node X; 1 <Head == X;> X.key = X.key + 1;", true),
        ("invariant (node n) n.key >= 0;", "Op() node X; 1 <Head == X;> X.key = X.key - 1;", false),
        ("invariant (node n) n.key > 0;", "Op() 1 READ Head;", false), // not at first
        (
            "invariant (node n, node m) n.next == m => n.key < m.key;",
            "Op() node X; node T; 1 T = malloc node; T.key = 5; 1 <Head == X; X.key < 5; X.next == NULL;> X.next = T;",
            true,
        ),
        (
            "invariant (node n, node m) n.next == m => n.key < m.key;",
            "Op() node X; node T; 1 T = malloc node; T.key = 5; 1 <Head == X; X.next == NULL;> X.next = T;",
            false,
        ),
        ("invariant Head != NULL;", "Op() node X; 1 Head = X;", false),
        ("invariant Head != NULL;", "Op() node X; 1 <X != NULL;> Head = X;", true),
        // A new node comes under the claim when it is published, not before.
        (
            "invariant (node n) n.key != 7;",
            "Op() node T; 1 T = malloc node; T.key = 7; 1 T.key = 8; 1 Head = T;",
            true,
        ),
        (
            "invariant (node n) n.key != 7;",
            "Op() node T; 1 T = malloc node; T.key = 7; 1 Head = T;",
            false,
        ),
    ];
    for (invariant, operation, believed) in rows {
        let program = program(&format!("{LIST}{invariant}\n{operation}"));
        let (claims, refused) = believe(&program, &Effort::default());
        assert_eq!(claims.believed.len(), usize::from(believed), "{invariant}\n{operation}");
        assert_eq!(refused.len(), usize::from(!believed));
    }
}

#[test]
fn an_invariant_that_leans_on_a_refused_one_is_refused_too() {
    let text = "int a; int b;\ninvariant a == 0;\ninvariant b == 0;\n\
        Op() 1 b = a;\nBreak() 1 a = 1;";
    let (claims, refused) = believe(&program(text), &Effort::default());
    assert!(claims.believed.is_empty());
    assert_eq!(refused.len(), 2);
}

#[test]
fn a_false_invariant_does_not_make_a_proof() {
    // With `a == 0` believed, the write in between would change nothing that Read sees.
    let text = "int a; int b;\ninvariant a == 0;\n\
        Read() int x; 1 x = a; 1 return x; return a;\nWrite() 1 a = 1;";
    let judgement = judge(&program(text), Bound::default());
    assert_eq!(judgement.refused.len(), 1);
    assert!(matches!(judgement.verdict, Verdict::Refuted { .. }));
}

/// The letters of two prefixes, and for each case whether they can be swapped; no case: the
/// second cannot follow.
#[test]
fn pairs_are_derived_from_what_the_sub_operations_mean() {
    let text = "int lock; int x; int r[];\n\
        A() 1 <lock == 0;> lock = ID; 1 <lock == ID;> lock = 0;\n\
        B(int i) 1 r[i] = 1; 1 READ x;\nC(int i) int v; 1 v = r[i]; 1 return v;";
    let program = program(text);
    let (claims, _) = believe(&program, &Effort::default());
    let prefixes = prefixes(&program);
    let rows: [(&str, &str, &[bool]); 6] = [
        ("a", "a", &[]),
        ("a", "ab", &[]),
        ("a", "c", &[true]),
        ("c", "e", &[false, true]),
        ("c", "c", &[true]),
        ("ab", "c", &[false]), // a complete operation is never moved
    ];
    for (first, second, swaps) in rows {
        let find =
            |letters| *prefixes.iter().find(|prefix| prefix.letters(&program) == letters).unwrap();
        let cases = derive(&program, &claims, find(first), find(second)).cases.unwrap();
        let mut found: Vec<_> = cases.iter().map(|case| case.reversible).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, swaps, "{first} {second}: {cases:?}");
    }
}
