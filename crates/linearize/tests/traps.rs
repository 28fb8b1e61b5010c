//! Specifications that are not linearizable, each for a reason that one shortcut of the proof would
//! overlook if it were taken too far. None may be proved; each is refuted.

use linearize::explore::search::Bound;
use linearize::language::read;
use linearize::{Verdict, judge};
use spec::Source;

fn check(why: &str, text: &str) {
    let source = Source::new("trap", text);
    let program =
        read(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source, false)));
    let verdict = judge(&program, Bound::default()).verdict;
    assert!(matches!(verdict, Verdict::Refuted { .. }), "{why}: {verdict:?}\n{text}");
}

/// What is linearizable if all operations end, and is not if one may stop for ever: the history has
/// an operation that does not return, and the assumption under which there is a proof is told.
fn check_pending(why: &str, text: &str) {
    let source = Source::new("trap", text);
    let program =
        read(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source, false)));
    let verdict = judge(&program, Bound::default()).verdict;
    let Verdict::Refuted { searched, if_all_end } = verdict else {
        panic!("{why}: {verdict:?}\n{text}");
    };
    assert!(if_all_end, "{why}: not proved even if all operations end\n{text}");
    let history = searched.counterexample.expect("a history");
    assert!(history.calls.iter().any(|call| call.pending), "{why}: {history:?}");
}

#[test]
fn operations_that_never_end_are_judged() {
    check_pending(
        "a lease is expired while its holder has written half",
        "int lease; int a; int b;
         Write(int v) 1 <lease == 0;> lease = ID; 1 <lease == ID;> a = v; 1 <lease == ID;> b = v;
                      1 <lease == ID;> lease = 0;
         internal Expire() 1 <lease != 0;> lease = 0;
         Read() 1 <lease == 0;> return a; return b;",
    );
    check_pending(
        "a lock is broken by whoever finds it taken",
        "int lock; int a; int b;
         Write(int v) 1 <lock == 0;> lock = ID; 1 <lock == ID;> a = v; b = 0; 1 <lock == ID;> b = v; lock = 0;
         internal Break() 1 <lock != 0;> lock = 0;
         Read() 1 <lock == 0;> return a; return b;",
    );
    check_pending(
        "a transfer is revoked between its two halves",
        "int owner; int x; int y;
         Move(int v) 1 <owner == 0;> owner = ID; 1 <owner == ID;> x = x - v; 1 <owner == ID;> y = y + v;
                     1 <owner == ID;> owner = 0;
         internal Revoke() 1 <owner != 0;> owner = 0;
         Sum() 1 <owner == 0;> return x + y;",
    );
}

/// What stays a proof although operations may stop anywhere: what they did is left out or ended.
#[test]
fn operations_that_never_end_do_no_harm_where_they_do_none() {
    for (why, text) in [
        (
            "a lock that is held for ever lets nobody see anything",
            "int lock; int a; int b;
             Write(int v) 1 <lock == 0;> lock = ID; 1 <lock == ID;> a = v; 1 <lock == ID;> b = v;
                          1 <lock == ID;> lock = 0;
             Read() 1 <lock == 0;> return a; return b;",
        ),
        (
            "what has been shown is completed",
            "int a; int b; Set(int v) 1 a = v; 1 READ a; Get() 1 return a;",
        ),
        (
            "only reading leaves nothing",
            "int a; Read() int x; 1 x = a; 1 <a == x;> return x; Set(int v) 1 a = v;",
        ),
    ] {
        let program = read(&Source::new("trap", text)).unwrap();
        let verdict = judge(&program, Bound::default()).verdict;
        assert!(matches!(verdict, Verdict::Proved), "{why}: {verdict:?}\n{text}");
    }
}

#[test]
fn traps_are_refuted() {
    check("a lost update", "int a; Inc() int x; 1 x = a; 1 a = x + 1; return x;");
    check(
        "what x established is undone by several others, none of which does it alone",
        "int a; int b; int c;
         S() int x; 1 <b == 0; c == 0;> x = a; 1 return x; return a;
         B() 1 b = 1;
         C() 1 c = 1;
         Y() 1 <b == 1; c == 1;> a = 1;",
    );
    check(
        "an operation seems never to end, but one that began earlier sets the version back",
        "int a; int b; int version;
         Read() int x; int y; int v; 1 v = version; x = a; 1 y = b; 1 <version == v;> return x; return y;
         Write() 1 a = 1; b = 1; version = version + 1;
         Restore() int r; 1 r = version; 1 version = r;",
    );
    check(
        "an operation seems never to end, but another sets the version back",
        "int a; int b; int version;
         Read() int x; int y; int v; 1 v = version; x = a; 1 y = b; 1 <version == v;> return x; return y;
         Write() 1 a = 1; b = 1; version = version + 1;
         Reset() 1 version = 0;",
    );
    check(
        "an operation that ends late has shown something before",
        "int a; int b;
         S() 1 b = 1; 1 return a; b = 0;
         Y() 1 <b == 1;> a = 1;",
    );
    check(
        "a node is filled after it is published",
        "struct node { int v }; node g;
         Make() node X; 1 X = malloc node; 1 g = X; 1 X.v = 1;
         Get() node P; 1 <g == P;> return P.v;",
    );
    check(
        "another role does the same to memory, but returns something else",
        "int a; int t;
         Get/one() int x; 1 x = a; 1 <a == x;> return 1; t = t + 1;
         Get/two() int x; 1 x = a; 1 <a != x;> return 2; t = t + 1;
         Set(int k) 1 a = k;",
    );
    check(
        "a check of an argument that nothing else looks at is no check that makes no difference",
        "int c; int d; init c = 1; d = 1;
         Swap/done(int o, int n) 1 <c == o;> 1 d = n; return 1;
         Swap/kept(int o, int n) 1 <c != o;> return 0;
         Set(int v) 1 c = v;
         Get() 1 return d;",
    );
    check(
        "a later step reads what an earlier one only checked",
        "struct node { int v, node next }; node Top;
         init node D; D = malloc node; Top = D;
         Swap(int k) node P; 1 <Top == P;> READ P; 1 P.v = k; 1 return Top.v;",
    );
    check(
        "a guessed node was made by the operation that it is moved before",
        "struct node { int v }; node g; int made;
         Make() node X; 1 X = malloc node; X.v = 1; 1 g = X; 1 made = 1;
         Use() node P; 1 <P.v == 1; made == 0;> READ P; 1 return made;",
    );
    check(
        "the order of operations that do not overlap matters",
        "int a; int b;
         Write(int k) 1 a = k; 1 b = k;
         Read() 1 return a; 1 return b;",
    );
}

/// The search once lost operations that write and then stop at a check of their own locals.
#[test]
fn who_stops_at_a_check_has_written() {
    check(
        "the first counts, and can then neither end nor be left out",
        "int a; int r[];
         Op(int k) int x; int y; 1 y = r[x]; 1 <a == x;> a = x + 1; return y; 1 <x > k;>",
    );
}

/// Handing over: what one that waits is given must be what it would have had without waiting.
#[test]
fn handing_over_changes_nothing_else() {
    check(
        "who was waiting has kept a number that is old by then",
        "struct q { int locked, q next }; q Tail; int count;
         Inc/alone() q I; q P; q N; int c; 1 I = malloc q; 1 <Tail == NULL;> Tail = I; c = count;
             1 count = c + 1; 1 <Tail == I;> Tail = NULL; return c;
         Inc/gives() q I; q P; q N; int c; 1 I = malloc q; 1 <Tail == NULL;> Tail = I; c = count;
             1 count = c + 1; 1 <I.next == N; N != NULL;> N.locked = 0; return c;
         Inc/waits() q I; q P; q N; int c; 1 I = malloc q; I.locked = 1;
             1 <Tail == P; P != NULL;> Tail = I; P.next = I; c = count;
             1 <I.locked == 0;> count = c + 1; 1 <Tail == I;> Tail = NULL; return c;",
    );
    check(
        "a field that its maker reads is read by others, too",
        "struct q { int v }; q Last;
         Put(int k) q I; 1 I = malloc q; 1 Last = I; 1 I.v = k; return I.v;
         Get() q L; 1 L = Last; 1 return L.v;",
    );
}
