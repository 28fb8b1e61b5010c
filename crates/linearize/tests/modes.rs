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

/// What the operations should do can be written out. A counter that counts by two is refuted, and
/// operations that swap values are explained in pairs only if they overlap.
#[test]
fn an_abstract_object_can_be_written_out() {
    let counter = |step: i64| {
        format!(
            "abstract {{ int n; Next() 1 n = n + 1; return n; }}
             int c; Next() 1 c = c + {step}; return c;"
        )
    };
    assert_eq!(verdict(&judged(&counter(1), PLAIN)), "proved");
    let wrong = judged(&counter(2), PLAIN);
    assert_eq!(verdict(&wrong), "refuted");
    let named = |odd: &Oddity| {
        matches!(odd, Oddity::Disagrees { object, stated: true, returned, expected, .. }
            if object == "abstract object" && returned == "2" && expected == "1")
    };
    assert!(wrong.oddities.iter().any(named), "{:?}", wrong.oddities);
    let swap = |settled: &str, steps: &str| {
        format!(
            "abstract {{
                int open; int mine; int theirs; {settled}
                Swap/first(int v) int w; 1 <open == 0;> open = 1; mine = v; theirs = w; return w;
                Swap/second(int v) 1 <open == 1; v == theirs;> return mine; open = 0; mine = 0; theirs = 0;
             }}
             int state; int a; int b;
             {steps}"
        )
    };
    let overlapping =
        "Swap/first(int v) 1 <state == 0;> state = 1; a = v; 1 <state == 2;> state = 0; return b;
         Swap/second(int v) 1 <state == 1;> state = 2; b = v; return a;";
    // The first foretells what the second will bring and returns before it comes.
    let apart = "Swap/first(int v) 1 <state == 0;> state = 1; a = v; return 2;
         Swap/second(int v) 1 <state == 1; v == 2;> state = 0; return a;";
    let paired = "invariant open == 0;";
    assert_eq!(verdict(&judged(&swap(paired, overlapping), PLAIN)), "not proved");
    assert_eq!(verdict(&judged(&swap(paired, apart), PLAIN)), "refuted");
    assert_eq!(verdict(&judged(&swap("", apart), PLAIN)), "proved");
}

#[test]
fn an_abstract_object_has_to_fit() {
    let rows = [
        ("abstract { int n; Put() 1 n = 1; } int a; Get() 1 return a;", "no operation `Get`"),
        ("abstract { int n; Get() 1 n = 1; } int a; Get() 1 return a;", "returns 1 values"),
        ("abstract { int n; Get() 1 return ID; } int a; Get() 1 return a;", "`ID`"),
        ("abstract { abstract queue; } int a; Get() 1 return a;", "an operation of the abstract"),
        (
            "abstract { struct n { int v }; n h; Get() 1 return h; } struct n { int v }; n h; Get() 1 return h;",
            "takes or returns a node",
        ),
    ];
    for (text, expected) in rows {
        let source = Source::new("object", text);
        let errors = read(&source).map(|_| ()).expect_err(text).render(&source, false);
        assert!(errors.contains(expected), "{text}: {errors}");
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
    has(
        "int lease; Take() 1 <lease == 0;> lease = ID; 1 <lease == ID;> lease = 0; Expire() 1 <lease != 0;> lease = 0;",
        &|odd| matches!(odd, Oddity::NeverEndsAlone { operation } if operation == "Expire"),
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

/// Peterson's lock: who came second sees the turn given back by who came first, and would have seen
/// no flag had it looked earlier. Both ways lead on alike, so it may as well have looked then.
#[test]
fn an_operation_may_go_on_in_another_role() {
    let text = |turn: &str| {
        let role = |name: &str, (mine, theirs): (&str, &str), wait: &str| {
            format!(
                "Next/{name}() on {mine} int c; 1 <{mine} == 0;> {mine} = 1; 1 turn = {turn}{theirs};
                     1 <{wait};> c = count; 1 count = c + 1; 1 {mine} = 0; return c;\n"
            )
        };
        let mut text = "int p1; int p2; int turn; int count;\n".to_owned();
        for (mine, theirs) in [("p1", "p2"), ("p2", "p1")] {
            let number = &mine[1..];
            text += &role(&format!("flag{number}"), (mine, theirs), &format!("{theirs} == 0"));
            text += &role(&format!("turn{number}"), (mine, theirs), &format!("turn == {number}"));
        }
        text.replace("turn = p1", "turn = 1")
            .replace("turn = p2", "turn = 2")
            .replace("turn = own p1", "turn = 2")
            .replace("turn = own p2", "turn = 1")
    };
    assert_eq!(verdict(&judged(&text(""), PLAIN)), "proved");
    // Who takes the turn for itself keeps nobody out.
    assert_eq!(verdict(&judged(&text("own "), PLAIN)), "refuted");
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
