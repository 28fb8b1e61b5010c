//! Random small specifications, made from a stream of choices so that a failure can be shrunk.

use std::fmt::Write as _;

/// Numbers from 0 up, as many as are asked for; when the stream ends, all further ones are 0.
pub struct Choices<'c> {
    bytes: &'c [u8],
    at: usize,
}

impl<'c> Choices<'c> {
    pub fn new(bytes: &'c [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn below(&mut self, limit: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % limit
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }
}

const NUMBERS: &[&str] = &[
    "0", "1", "x", "x", "a", "a", "b", "k", "ID", "a + 1", "x + 1", "y", "h.v", "p.v", "r[x]",
    "r[0]", "-1", "a + b", "b - x", "a % 2",
];
const NUMBER_PLACES: &[&str] =
    &["a", "a", "x", "x", "b", "y", "h.v", "p.v", "r[x]", "r[0]", "r[ID]", "q.v"];
const NODES: &[&str] = &["p", "p", "h", "h", "q", "NULL", "p.n", "h.n", "q.n"];
const NODE_PLACES: &[&str] = &["p", "h", "h", "q", "p.n", "h.n", "q.n"];
const RELATIONS: &[&str] = &["==", "==", "!=", "<", "<=", ">"];
const EQUALITIES: &[&str] = &["==", "==", "!="];
/// Sub-operations as people write them, right and wrong, about numbers,
const COUNTING: &[&str] = &[
    "x = a;",
    "a = x + 1;",
    "<a == x;> a = x + 1;",
    "x = a; a = a + 1;",
    "<a == 0;> a = ID;",
    "<a == ID;> a = 0;",
    "<a == ID;> b = b + 1;",
    "<a == ID;> x = b;",
    "<a == ID;> b = x + 1;",
    "b = x;",
    "x = b;",
    "return x;",
    "return a; return b;",
    "b = k;",
    "r[x] = k;",
    "y = r[0];",
    "<r[x] == 0;> r[x] = 1;",
    "<b == 0;> return 0;",
    "<a > x;> return 1;",
    "<b != 0;> return b;",
    "<b == x; a == 0;> b = k;",
    "y = b;",
    "<b == y;> return x; return y;",
    "b = b + 1; a = k;",
    // Leases, steps that may never come, numbers that are not positive, and arithmetic.
    "<a != 0;> a = 0;",
    "<a == 0;> return b; return x;",
    "<a == 0;> return b; return r[0];",
    "<a == 2;> b = 1;",
    "r[0] = k;",
    "b = -1;",
    "<k == 0;> a = 1;",
    "<k < 0;> b = b - 1;",
    "<b < 0;> return -1;",
    "a = (a + 1) % 2;",
    "r[x % 2] = k;",
    "b = a + b;",
    "x = a - b;",
    "<a + b == 1;> return b;",
    "return a % 2;",
];

/// and about lists.
const LINKING: &[&str] = &[
    "p = h;",
    "q = p.n;",
    "<h == p;> h = p.n; return p.v;",
    "<h == p; p.n == q;> h = q;",
    "h = q;",
    "<h == q;> h = p;",
    "p = malloc node; p.v = k;",
    "q = malloc node; q.v = k;",
    "p.n = h;",
    "p.n = q;",
    "h = p;",
    "<h == p; p.n == NULL;> p.n = q;",
    "<p.v == 0;> p.v = 1;",
    "<h == NULL;> return 0;",
    "return p.v;",
    "h.v = k;",
    "x = h.v;",
    "<h.v == x;> h.v = x + 1;",
    "<h != NULL;> return h.v;",
    "<h == p; p != NULL;> return p.v; h = p.n;",
    "<p.n == q;> p.n = q.n;",
    "<p.n == q; p.v == 0;> q.v = 1; p.n = q.n;",
    "<h.n == NULL;> return 0;",
    "READ p.n;",
];

/// A lock with a queue of waiting operations, whose nodes only their makers read,
const HANDING: &[&str] = &[
    "p = malloc node;",
    "p = malloc node; p.v = 1;",
    "p.v = 1;",
    "<h == NULL;> h = p;",
    "<h == q; q != NULL;> h = p;",
    "q = h; h = p;",
    "q.n = p;",
    "<p.v == 0;> x = a;",
    "x = a;",
    "a = x + 1;",
    "<h == p;> h = NULL; return x;",
    "<h == p;> h = NULL;",
    "<p.n == q; q != NULL;> q.v = 0; return x;",
    "<p.n == q; q != NULL;> q.v = 0;",
    "return x;",
];

/// and numbers that one thread counts down and others count up.
const STEALING: &[&str] = &[
    "x = a;",
    "y = b;",
    "x = b - 1;",
    "b = x;",
    "<b > x;>",
    "<b <= x;> return 0;",
    "<a == x;> a = x + 1; return y;",
    "<a == x;> a = x + 1;",
    "<a == x;> y = r[x];",
    "<a != x;>",
    "<a == y; y < x;> return r[x];",
    "<a == y; y > x;>",
    "y = r[x];",
    "r[x] = k;",
    "b = x + 1;",
    "b = x + 1; return 0;",
    "return y;",
];

const INVARIANTS: &[&str] = &[
    "invariant (node s) s.v == 0;",
    "invariant (node s) s.n == NULL;",
    "invariant (node s, node t) s.n == t => s.v < t.v;",
    "invariant (node s, node t) s.n == t.n, s.n != NULL => s == t;",
    "invariant a == 0 => b == 0;",
    "invariant a >= 0;",
    "invariant h != NULL;",
    "invariant (int i) i > a => r[i] == 0;",
    "invariant (node s) s != h => s.v == 1;",
    "invariant (node s, node t) s.v == t.v => s == t;",
    "invariant b != 0 => h.n == NULL;",
    "invariant (int i) r[i] <= 1;",
];

/// A specification of one or two operations with up to three sub-operations each.
pub fn specification(choices: &mut Choices<'_>) -> String {
    let mut text = String::from("struct node { int v, node n };\nint a; int b; node h; int r[];\n");
    match choices.below(6) {
        0 => {}
        1 | 2 => text.push_str("init node d; d = malloc node; h = d;\n"),
        3 | 4 => text.push_str(
            "init node d; node e; d = malloc node; e = malloc node; h = d; d.n = e; e.v = 1;\n",
        ),
        _ => text.push_str("init node d; d = malloc node; h = d; d.n = d; a = 1;\n"),
    }
    for _ in 0..choices.below(3) {
        let _ = writeln!(text, "{}", choices.pick(INVARIANTS));
    }
    let theme = choices.below(5);
    let special = choices.below(12);
    for operation in 0..1 + choices.below(2) {
        let internal = if special == 0 && operation == 1 { "internal " } else { "" };
        // The deque has an owner.
        let owned = special == 1 || (theme == 4 && operation == 0 && special.is_multiple_of(2));
        let thread = if owned { " on t" } else { "" };
        let steps = [2, 3, 2, 1][choices.below(4)];
        let mut steps: Vec<String> = (0..steps).map(|_| step(choices, theme)).collect();
        // Two roles that differ in one sub-operation.
        let several = (2..5).contains(&special) && operation == 0 || theme >= 3 && special > 1;
        let roles: &[&str] = if several { &["/one", "/two"] } else { &[""] };
        for role in roles {
            let head = format!("{internal}Op{operation}{role}(int k){thread}");
            let _ = writeln!(text, "{head}\n    int x; int y; node p; node q;");
            steps.iter().for_each(|step| text.push_str(step));
            let other = choices.below(steps.len());
            match choices.below(if theme >= 3 { 3 } else { 1 }) {
                0 => steps[other] = step(choices, theme),
                1 if steps.len() > 1 => drop(steps.remove(other)),
                _ => steps.insert(other, step(choices, theme)),
            }
        }
    }
    text
}

/// A sub-operation, on a line of its own.
fn step(choices: &mut Choices<'_>, theme: usize) -> String {
    let mut text = String::new();
    match (choices.below(4), theme) {
        (0, _) => random_step(choices, &mut text),
        (_, 0) => text.push_str(&format!("    1 {}\n", choices.pick(COUNTING))),
        (_, 3) => text.push_str(&format!("    1 {}\n", choices.pick(HANDING))),
        (_, 4) => text.push_str(&format!("    1 {}\n", choices.pick(STEALING))),
        (_, 1) => text.push_str(&format!("    1 {}\n", choices.pick(LINKING))),
        (1, _) => text.push_str(&format!("    * {}\n", choices.pick(COUNTING))),
        (_, _) => text.push_str(&format!("    1 {}\n", choices.pick(LINKING))),
    }
    text
}

fn random_step(choices: &mut Choices<'_>, text: &mut String) {
    text.push_str(choices.pick(&["    1", "    1", "    *"]));
    let conditions = [0, 0, 1, 1, 2][choices.below(5)];
    if conditions > 0 {
        text.push_str(" <");
        (0..conditions).for_each(|_| condition(choices, text));
        text.push('>');
    }
    let statements = [1, 1, 2, 2, 0][choices.below(5)];
    for _ in 0..statements {
        statement(choices, text);
    }
    if conditions + statements == 0 {
        text.push_str(" READ a;");
    }
    text.push('\n');
}

fn condition(choices: &mut Choices<'_>, text: &mut String) {
    let _ = if choices.below(2) == 0 {
        let (left, relation) = (choices.pick(NUMBER_PLACES), choices.pick(RELATIONS));
        write!(text, "{left} {relation} {}; ", choices.pick(NUMBERS))
    } else {
        let (left, relation) = (choices.pick(NODE_PLACES), choices.pick(EQUALITIES));
        write!(text, "{left} {relation} {}; ", choices.pick(NODES))
    };
}

fn statement(choices: &mut Choices<'_>, text: &mut String) {
    let _ = match choices.below(8) {
        0..=2 => {
            let target = choices.pick(NUMBER_PLACES);
            write!(text, " {target} = {};", choices.pick(NUMBERS))
        }
        3 | 4 => {
            let target = choices.pick(NODE_PLACES);
            write!(text, " {target} = {};", choices.pick(NODES))
        }
        5 => write!(text, " {} = malloc node;", choices.pick(&["p", "q"])),
        6 => write!(text, " return {};", choices.pick(NUMBERS)),
        _ => write!(text, " READ {};", choices.pick(NUMBER_PLACES)),
    };
}
