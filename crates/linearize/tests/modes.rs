//! What can be asked for: store buffers, nodes that are used again, an object that the operations
//! should be; and what is said about operations that are odd by themselves.

use linearize::explore::machine::Memory;
use linearize::explore::search::Bound;
use linearize::explore::survey::Oddity;
use linearize::language::read;
use linearize::{Assumption, Judgement, Verdict, judge};
use spec::Source;
use std::time::Duration;

fn judged(text: &str, memory: Memory) -> Judgement {
    let source = Source::new("mode", text);
    let program =
        read(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source, false)));
    let time = Duration::from_secs(120);
    judge(&program, Bound { operations: 6, states: 300_000, time, memory, ..Bound::default() })
}

const PLAIN: Memory = Memory { buffers: false, reuse: false };
const BUFFERS: Memory = Memory { buffers: true, reuse: false };
const REUSE: Memory = Memory { buffers: false, reuse: true };

fn verdict(judgement: &Judgement) -> &'static str {
    match judgement.verdict {
        Verdict::Proved => "proved",
        Verdict::Refuted { .. } => "refuted",
        Verdict::NotProved { .. } => "not proved",
    }
}

/// A store that waits in a buffer when its operation has returned is seen too late by others. A
/// fence, or a locked instruction, forbids it.
#[test]
fn store_buffers_show_and_fences_hide_them() {
    let rows = [
        ("int x; Write(int v) 1 x = v; Read() 1 return x;", "proved", "refuted"),
        ("int x; Write(int v) 1 x = v; 1 fence; Read() 1 return x;", "proved", "proved"),
        ("int x; Write(int v) int o; 1 o = x; x = v; Read() 1 return x;", "proved", "proved"),
        (
            "int x; int y; Move() 1 x = 1; 1 y = 1; 1 fence; Read() 1 return x; return y;",
            "refuted",
            "refuted",
        ),
    ];
    for (text, ordered, buffered) in rows {
        assert_eq!(verdict(&judged(text, PLAIN)), ordered, "{text}");
        assert_eq!(verdict(&judged(text, BUFFERS)), buffered, "{text}");
    }
}

/// Treiber's stack that frees what it pops: right without reuse, ABA with it.
#[test]
fn nodes_that_are_used_again_show_aba() {
    let text = "struct node { int value, node next }; node Top;
        Push(int v) node X; node T; 1 X = malloc node; X.value = v; 1 X.next = T; 1 <Top == T;> Top = X;
        Pop/item() node T; node N; int v;
            1 <Top == T; T != NULL;> N = T.next; v = T.value; 1 <Top == T;> Top = N; free T; return v;
        Pop/empty() 1 <Top == NULL;> return 0;";
    assert_eq!(verdict(&judged(text, PLAIN)), "proved");
    assert_eq!(verdict(&judged(text, REUSE)), "refuted");
}

#[test]
fn a_wrong_sequential_meaning_is_caught() {
    let lifo = "int n; int a[];
        Enqueue(int v) 1 a[n] = v; n = n + 1;
        Dequeue/item() 1 <n > 0;> n = n - 1; return a[n];
        Dequeue/empty() 1 <n == 0;> return 0;";
    let named = judged(lifo, PLAIN);
    assert_eq!(verdict(&named), "proved");
    assert!(named.assumptions.contains(&Assumption::SequentialMeaning));
    let suspected = |odd: &Oddity| matches!(odd, Oddity::Disagrees { stated: false, .. });
    assert!(named.oddities.iter().any(suspected), "{:?}", named.oddities);
    let stated = judged(&format!("abstract queue; {lifo}"), PLAIN);
    assert_eq!(verdict(&stated), "refuted");
    let fifo = "abstract queue; int h; int t; int a[];
        Enqueue(int v) 1 a[t] = v; t = t + 1;
        Dequeue/item() 1 <h < t;> h = h + 1; return a[h - 1];
        Dequeue/empty() 1 <h == t;> return -1;";
    let right = judged(fifo, PLAIN);
    assert_eq!(verdict(&right), "proved", "{:?}", right.oddities);
    assert!(
        matches!(right.assumptions[0], Assumption::ComparedWithObject(operations) if operations >= 3)
    );
    for (object, text, right) in [
        (
            "stack",
            "int n; int a[]; Push(int v) 1 a[n] = v; n = n + 1; Pop() 1 <n > 0;> n = n - 1; return a[n];",
            true,
        ),
        (
            "set",
            "int a[]; Add/new(int k) 1 <a[k] == 0;> a[k] = 1; return 1; Add/old(int k) 1 <a[k] == 1;> return 0; Has(int k) 1 return a[k];",
            true,
        ),
        ("set", "int a[]; Add(int k) 1 a[k] = 1; return 1; Has(int k) 1 return a[k];", false),
        ("map", "int a[]; Put(int k, int v) 1 a[k] = v; Get(int k) 1 return a[k];", true),
        ("counter", "int c; Increment() 1 c = c + 1; return c; Get() 1 return c;", true),
        ("counter", "int c; Increment() 1 c = c + 2; Get() 1 return c;", false),
        ("register", "int c; Write(int v) 1 c = v; Read() 1 return c;", true),
        ("register", "int c; Write(int v) 1 c = v; Read() 1 return 0;", false),
    ] {
        let found = judged(&format!("abstract {object}; {text}"), PLAIN);
        let expected = if right { "proved" } else { "refuted" };
        assert_eq!(verdict(&found), expected, "{object}: {text} {:?}", found.oddities);
    }
}

#[test]
fn what_is_odd_is_named() {
    let has = |text: &str, odd: &dyn Fn(&Oddity) -> bool| {
        let found = judged(text, PLAIN);
        assert!(found.oddities.iter().any(odd), "{text}: {:?}", found.oddities);
    };
    // A typo in a precondition; a lock that is never given back; one that may answer either.
    has(
        "int a; Set() 1 a = 1; Get() 1 <a == 7;> return a;",
        &|odd| matches!(odd, Oddity::NeverEnds { operation } if operation == "Get"),
    );
    has(
        "int lock; Take() 1 <lock == 0;> lock = ID;",
        &|odd| matches!(odd, Oddity::Stuck { call, after, .. } if call == "Take()" && after.len() == 1),
    );
    has(
        "int a; Has/yes() 1 return 1; Has/no() 1 return 0;",
        &|odd| matches!(odd, Oddity::Varies { call, results, .. } if call == "Has()" && results.len() == 2),
    );
    has(
        "int n; Put() 1 n = n + 1; Take() 1 <n > 0;> n = n - 1;",
        &|odd| matches!(odd, Oddity::Waits { call, .. } if call == "Take()"),
    );
    let quiet = judged("int a; Set(int v) 1 a = v; Get() 1 return a;", PLAIN);
    assert!(quiet.oddities.is_empty(), "{:?}", quiet.oddities);
}

/// The counterexample needs the argument 0.
#[test]
fn zero_and_negative_arguments_are_tried() {
    for guard in ["k == 0", "k < 0", "k == 77"] {
        let text = format!(
            "int a; int b; Odd(int k) 1 <{guard};> a = 1; 1 b = 1; Get() 1 return a; return b;"
        );
        assert_eq!(verdict(&judged(&text, PLAIN)), "refuted", "{guard}");
    }
}

/// A ring with one place too many, paired with the right one; threads that alone run something.
#[test]
fn threads_run_one_operation_at_a_time() {
    let text = |on: &str| {
        format!("int a; Inc(){on} int x; 1 x = a; 1 a = x + 1; return x; Get() 1 return a;")
    };
    assert_eq!(verdict(&judged(&text(""), PLAIN)), "refuted");
    assert_eq!(verdict(&judged(&text(" on writer"), PLAIN)), "proved");
}

/// A safe check more must not lose a proof.
#[test]
fn a_redundant_check_does_not_lose_a_proof() {
    let text = |check: &str| {
        format!(
            "struct node {{ int value, node next }}; node Head; node Tail;
             init node D; D = malloc node; Head = D; Tail = D;
             Enqueue(int v) node X; node T; 1 X = malloc node; X.value = v;
                 1 <Tail == T; T.next == NULL;> T.next = X; * <Tail == T;> Tail = X;
             Dequeue/item() node H; node N; int v; 1 <Head == H; Tail != H;> N = H.next; {check}
                 1 <N != NULL;> v = N.value; 1 <Head == H;> Head = N; return v;
             Dequeue/empty() node H; 1 <Head == H; Tail == H; H.next == NULL;> return 0;"
        )
    };
    assert_eq!(verdict(&judged(&text(""), PLAIN)), "proved");
    assert_eq!(verdict(&judged(&text("1 <Head == H;>"), PLAIN)), "proved");
}
