//! Terms and facts: equality of references with congruence, and differences of whole numbers.
//!
//! References live in a union-find; numbers in a matrix of bounds on their differences. Both feed
//! congruence: equal nodes have equal fields, equal indices equal elements. Numbers that only
//! differ (`!=`) tighten bounds they touch. The solver is sound and not complete: [`Conflict`] is
//! always right, and its absence proves nothing.

use crate::language::ast::Relation;
use crate::model::Type;

/// A term, by number.
pub type TermId = usize;

/// What a term stands for. All but `Fresh` are values of the state at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The number 0; constants are this plus an offset.
    Zero,
    /// No node.
    Null,
    /// What a shared variable held.
    Global(usize),
    /// What a local variable of an instance held, or was guessed to hold.
    Local(usize, usize),
    /// A node that an instance allocated on the way.
    Fresh(usize, usize),
    /// A node that an instance allocated before the start and has shown to no one.
    Private(usize, usize),
    /// The identity of an instance.
    Id(usize),
    /// What a field of a node held.
    Field(usize, TermId),
    /// What an element of an array held: array, index term, index offset.
    Element(usize, TermId, i64),
    /// The sum of two numbers, the one with the smaller id first.
    Sum(TermId, TermId),
    /// The second number taken from the first.
    Difference(TermId, TermId),
    /// The rest of a number plus an offset when divided by a positive number.
    Modulo(TermId, i64, i64),
}

/// A term plus a number; the number is 0 for references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The term.
    pub term: TermId,
    /// What is added.
    pub offset: i64,
}

impl Value {
    /// A term by itself.
    #[must_use]
    pub fn of(term: TermId) -> Self {
        Self { term, offset: 0 }
    }
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Left side.
    pub left: Value,
    /// The comparison.
    pub relation: Relation,
    /// Right side.
    pub right: Value,
}

impl Literal {
    /// `left == right`
    #[must_use]
    pub fn equal(left: Value, right: Value) -> Self {
        Self { left, relation: Relation::Equal, right }
    }

    /// The literal that holds exactly when this one does not.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { relation: self.relation.negated(), ..self }
    }
}

/// The facts contradict each other: no state is like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

/// How often consequences are drawn before it is left at that.
const MOST_ROUNDS: usize = 200;

/// No bound.
const FAR: i64 = i64::MAX / 4;

/// The number 0, always the first term.
pub const ZERO: TermId = 0;
/// No node, always the second term.
pub const NULL: TermId = 1;

#[derive(Clone, Debug)]
struct Info {
    term: Term,
    ty: Type,
    /// Whether code touched it; the others only occur in instances of invariants.
    touched: bool,
}

/// Terms and facts.
#[derive(Clone, Debug)]
pub struct Solver {
    terms: Vec<Info>,
    /// The representative of each reference, always up to date.
    parent: Vec<TermId>,
    /// Whether a representative's class has a public member.
    public: Vec<bool>,
    /// Terms that are cells of other terms: by field and node, by array and index.
    cells: Vec<TermId>,
    /// For each representative, the representatives that differ from it, as bits. Terms beyond the
    /// bits have none: what is not noted is not known.
    differ: Vec<u128>,
    /// Row of a number in the matrix.
    row: Vec<usize>,
    /// `bounds[a * width + b]`: the most that a - b can be.
    bounds: Vec<i64>,
    width: usize,
    rows: usize,
    /// Numbers whose difference a - b is not this.
    avoid: Vec<(TermId, TermId, i64)>,
    /// Counts changes, so that others can tell whether anything is new.
    version: u64,
    dirty: bool,
    /// Whether new terms count as touched.
    pub(super) touching: bool,
    /// Whether every instance may have run before the start, so that its identity may be anywhere.
    pub all_have_run: bool,
}

impl Default for Solver {
    fn default() -> Self {
        let mut solver = Self {
            terms: Vec::new(),
            parent: Vec::new(),
            public: Vec::new(),
            cells: Vec::new(),
            differ: Vec::new(),
            row: Vec::new(),
            bounds: Vec::new(),
            width: 0,
            rows: 0,
            avoid: Vec::new(),
            version: 0,
            dirty: false,
            touching: true,
            all_have_run: false,
        };
        solver.intern(Term::Zero, Type::Int, true);
        solver.intern(Term::Null, Type::Ref(usize::MAX), true);
        solver
    }
}

impl Solver {
    /// The number of a term, new or known. `public` says that every thread could have reached it.
    pub fn intern(&mut self, term: Term, ty: Type, public: bool) -> TermId {
        if let Some(known) = self.find(term) {
            if self.touching && !self.terms[known].touched {
                self.terms[known].touched = true;
                self.version += 1;
            }
            return known;
        }
        let id = self.terms.len();
        self.terms.push(Info { term, ty, touched: self.touching });
        self.parent.push(id);
        self.differ.push(0);
        self.public.push(public);
        let row = if ty == Type::Int { self.add_row() } else { usize::MAX };
        self.row.push(row);
        self.version += 1;
        if is_derived(term) {
            // A new cell may be one that is known under another name.
            self.cells.push(id);
            self.dirty = true;
        }
        id
    }

    /// The number of a term, if it is known under this name.
    #[must_use]
    pub fn find(&self, term: Term) -> Option<TermId> {
        let is_it = |&id: &TermId| self.terms[id].term == term;
        match term {
            derived if is_derived(derived) => self.cells.iter().copied().find(is_it),
            _ => (0..self.terms.len()).find(is_it),
        }
    }

    /// The term for what a field of `base` held at the start, if there is one under any name.
    #[must_use]
    pub fn find_field(&self, field: usize, base: TermId) -> Option<TermId> {
        let root = self.root(base);
        self.cells.iter().copied().find(|&id| match self.terms[id].term {
            Term::Field(known, of) => known == field && self.parent[of] == root,
            _ => false,
        })
    }

    fn add_row(&mut self) -> usize {
        let number = self.rows;
        if number == self.width {
            self.widen();
        }
        self.bounds[number * self.width + number] = 0;
        self.rows += 1;
        number
    }

    fn widen(&mut self) {
        let (old, new) = (self.width, (self.width * 2).max(16));
        let mut bounds = vec![FAR; new * new];
        for line in 0..self.rows {
            bounds[line * new..line * new + old]
                .copy_from_slice(&self.bounds[line * old..(line + 1) * old]);
        }
        self.bounds = bounds;
        self.width = new;
    }

    /// What a term stands for.
    #[must_use]
    pub fn term(&self, id: TermId) -> Term {
        self.terms[id].term
    }

    /// How many terms there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // 0 and NULL are always there
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether a term is a number.
    #[must_use]
    pub fn is_int(&self, id: TermId) -> bool {
        self.terms[id].ty == Type::Int
    }

    /// The type of a term.
    #[must_use]
    pub fn type_of(&self, id: TermId) -> Type {
        self.terms[id].ty
    }

    /// Whether code touched the term.
    #[must_use]
    pub fn is_touched(&self, id: TermId) -> bool {
        self.terms[id].touched
    }

    /// The term for what a field of `base` held at the start.
    pub fn field(&mut self, field: usize, base: TermId, ty: Type) -> TermId {
        let root = self.root(base);
        let known = self.find_field(field, root).map(|id| self.terms[id].term);
        let term = known.unwrap_or(Term::Field(field, root));
        self.intern(term, ty, self.public[root])
    }

    /// Counts changes of terms and facts.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The representative of a reference.
    #[must_use]
    pub fn root(&self, id: TermId) -> TermId {
        self.parent[id]
    }

    fn bound(&self, a: TermId, b: TermId) -> i64 {
        self.bounds[self.row[a] * self.width + self.row[b]]
    }

    /// Whether the literal is known to hold or known to fail.
    #[must_use]
    pub fn known(&self, literal: Literal) -> Option<bool> {
        let Literal { left, relation, right } = literal;
        if !self.is_int(left.term) {
            let equal = self.references_equal(left.term, right.term)?;
            return Some(equal == (relation == Relation::Equal));
        }
        // left.term - right.term RELATION gap
        let gap = right.offset - left.offset;
        let (most, least) = (self.bound(left.term, right.term), -self.bound(right.term, left.term));
        match relation {
            Relation::Equal => self.numbers_equal(left.term, right.term, gap, least, most),
            Relation::NotEqual => {
                self.numbers_equal(left.term, right.term, gap, least, most).map(|equal| !equal)
            }
            Relation::Less => compare(most < gap, least >= gap),
            Relation::LessEqual => compare(most <= gap, least > gap),
            Relation::Greater => compare(least > gap, most <= gap),
            Relation::GreaterEqual => compare(least >= gap, most < gap),
        }
    }

    fn numbers_equal(&self, a: TermId, b: TermId, gap: i64, least: i64, most: i64) -> Option<bool> {
        if least == gap && most == gap {
            return Some(true);
        }
        let avoided = self.avoid.iter().any(|&(x, y, value)| {
            (x == a && y == b && value == gap) || (x == b && y == a && value == -gap)
        });
        let apart = least > gap || most < gap || avoided || self.ids_differ(a, b, gap);
        apart.then_some(false)
    }

    /// An identity is no constant, no other identity, and nothing that was there before its
    /// instance began. Instance 0 may have run before the start; the others begin after it,
    /// unless all may have run.
    fn ids_differ(&self, a: TermId, b: TermId, gap: i64) -> bool {
        if gap != 0 || a == b {
            return false;
        }
        let alien = |id: TermId, other: TermId| match (self.term(id), self.term(other)) {
            (Term::Id(_), Term::Zero | Term::Id(_)) => true,
            // What is computed from an identity may equal it.
            (Term::Id(_), Term::Sum(..) | Term::Difference(..) | Term::Modulo(..)) => false,
            (Term::Id(instance), _) => instance != 0 && !self.all_have_run,
            _ => false,
        };
        alien(a, b) || alien(b, a)
    }

    fn references_equal(&self, a: TermId, b: TermId) -> Option<bool> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Some(true);
        }
        let differ = self.differ[a] & bit(b) != 0 || self.differ[b] & bit(a) != 0;
        (differ || self.cannot_merge(a, b)).then_some(false)
    }

    /// Whether two classes cannot be one, by what their members are.
    fn cannot_merge(&self, a: TermId, b: TermId) -> bool {
        self.cannot_hold(a, b) || self.cannot_hold(b, a)
    }

    fn cannot_hold(&self, special: TermId, other: TermId) -> bool {
        let distinct =
            |id| matches!(self.term(id), Term::Null | Term::Fresh(..) | Term::Private(..));
        match self.term(special) {
            Term::Fresh(..) => true,
            Term::Private(..) => distinct(other) || self.class_is_public(other),
            Term::Null => distinct(other),
            _ => false,
        }
    }

    /// Whether every thread could have reached the node at the start.
    #[must_use]
    pub fn class_is_public(&self, root: TermId) -> bool {
        self.public[root]
    }

    /// Adds a fact and everything that follows.
    pub fn assume(&mut self, literal: Literal) -> Result<(), Conflict> {
        match self.known(literal) {
            Some(true) => return Ok(()),
            Some(false) => return Err(Conflict),
            None => {}
        }
        self.version += 1;
        self.add(literal)?;
        self.close()
    }

    fn add(&mut self, literal: Literal) -> Result<(), Conflict> {
        let Literal { left, relation, right } = literal;
        let (a, b) = (left.term, right.term);
        if !self.is_int(a) {
            return if relation == Relation::Equal {
                self.merge(a, b)
            } else {
                let (a, b) = (self.root(a), self.root(b));
                self.differ[a] |= bit(b);
                self.differ[b] |= bit(a);
                Ok(())
            };
        }
        let gap = right.offset - left.offset;
        match relation {
            Relation::Equal => {
                self.limit(a, b, gap)?;
                self.limit(b, a, -gap)
            }
            Relation::NotEqual => {
                self.avoid.push((a, b, gap));
                Ok(())
            }
            Relation::Less => self.limit(a, b, gap - 1),
            Relation::LessEqual => self.limit(a, b, gap),
            Relation::Greater => self.limit(b, a, -gap - 1),
            Relation::GreaterEqual => self.limit(b, a, -gap),
        }
    }

    fn merge(&mut self, a: TermId, b: TermId) -> Result<(), Conflict> {
        match self.references_equal(a, b) {
            Some(true) => return Ok(()),
            Some(false) => return Err(Conflict),
            None => {}
        }
        let (a, b) = (self.root(a), self.root(b));
        // A term of a special kind stays the representative.
        let special = |id| matches!(self.term(id), Term::Null | Term::Private(..));
        let (keep, give) = if special(b) { (b, a) } else { (a, b) };
        for parent in &mut self.parent {
            if *parent == give {
                *parent = keep;
            }
        }
        self.public[keep] |= self.public[give];
        self.differ[keep] |= self.differ[give];
        for other in &mut self.differ {
            if *other & bit(give) != 0 {
                *other |= bit(keep);
            }
        }
        self.version += 1;
        self.dirty = true;
        Ok(())
    }

    /// Notes that a - b is at most `most`, and what follows for all other numbers.
    fn limit(&mut self, a: TermId, b: TermId, most: i64) -> Result<(), Conflict> {
        if self.bound(a, b) <= most {
            return Ok(());
        }
        if self.bound(b, a).saturating_add(most) < 0 {
            return Err(Conflict);
        }
        let (a, b, rows, width) = (self.row[a], self.row[b], self.rows, self.width);
        for i in 0..rows {
            let to_a = self.bounds[i * width + a];
            if to_a >= FAR {
                continue;
            }
            for j in 0..rows {
                let from_b = self.bounds[b * width + j];
                let through = to_a + most + from_b;
                if from_b < FAR && through < self.bounds[i * width + j] {
                    self.bounds[i * width + j] = through;
                }
            }
        }
        self.version += 1;
        self.dirty = true;
        Ok(())
    }

    /// Draws consequences until nothing changes.
    pub fn close(&mut self) -> Result<(), Conflict> {
        // Sums can tighten each other in ever smaller steps; what is not drawn is not known.
        for _ in 0..MOST_ROUNDS {
            self.dirty = false;
            self.tighten()?;
            self.congruence()?;
            self.arithmetic()?;
            if !self.dirty {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A bound that reaches an avoided difference moves past it.
    fn tighten(&mut self) -> Result<(), Conflict> {
        for at in 0..self.avoid.len() {
            let (a, b, value) = self.avoid[at];
            if self.bound(a, b) == value {
                self.limit(a, b, value - 1)?;
            }
            if self.bound(b, a) == -value {
                self.limit(b, a, -value - 1)?;
            }
        }
        Ok(())
    }

    fn congruence(&mut self) -> Result<(), Conflict> {
        for later in 0..self.cells.len() {
            for earlier in 0..later {
                let (earlier, later) = (self.cells[earlier], self.cells[later]);
                let Some((gap, relation)) = self.gap(earlier, later) else { continue };
                let right = Value { term: later, offset: gap };
                let follows = Literal { left: Value::of(earlier), relation, right };
                match self.known(follows) {
                    Some(true) => {}
                    Some(false) => return Err(Conflict),
                    None => self.add(follows)?,
                }
            }
        }
        Ok(())
    }

    /// What follows for two derived terms from what they are derived from: the first is the
    /// second plus a number, or is not.
    fn gap(&self, a: TermId, b: TermId) -> Option<(i64, Relation)> {
        let equal = |holds: bool| holds.then_some((0, Relation::Equal));
        match (self.term(a), self.term(b)) {
            (Term::Field(f, x), Term::Field(g, y)) => equal(f == g && self.root(x) == self.root(y)),
            (Term::Element(f, x, i), Term::Element(g, y, j)) => {
                equal(f == g && self.fixed(x, y) == Some(j - i))
            }
            (Term::Sum(x, y), Term::Sum(v, w)) => {
                let straight = self.fixed(x, v).zip(self.fixed(y, w));
                let crossed = || self.fixed(x, w).zip(self.fixed(y, v));
                straight.or_else(crossed).map(|(one, other)| (one + other, Relation::Equal))
            }
            (Term::Difference(x, y), Term::Difference(v, w)) => {
                let both = self.fixed(x, v).zip(self.fixed(y, w));
                both.map(|(one, other)| (one - other, Relation::Equal))
            }
            (Term::Modulo(x, i, n), Term::Modulo(y, j, m)) if n == m => {
                let (least, most) = (-self.bound(y, x), self.bound(x, y));
                if least == most {
                    let same = (least + i - j).rem_euclid(n) == 0;
                    return Some((0, if same { Relation::Equal } else { Relation::NotEqual }));
                }
                // Less than one round apart, and not the same.
                let (least, most) = (least.saturating_add(i - j), most.saturating_add(i - j));
                let apart = (least > 0 && most < n) || (most < 0 && least > -n);
                apart.then_some((0, Relation::NotEqual))
            }
            _ => None,
        }
    }

    /// What the first number is more than the second, if it is known exactly.
    #[must_use]
    pub fn exact_difference(&self, left: Value, right: Value) -> Option<i64> {
        let numbers = self.is_int(left.term) && self.is_int(right.term);
        let terms = if numbers { self.fixed(left.term, right.term) } else { None };
        terms.map(|terms| terms + left.offset - right.offset)
    }

    /// a - b, if it is known exactly.
    fn fixed(&self, a: TermId, b: TermId) -> Option<i64> {
        let most = self.bound(a, b);
        (most < FAR && self.bound(b, a) == -most).then_some(most)
    }

    /// What follows for sums, differences and rests from the bounds of what they are made of.
    fn arithmetic(&mut self) -> Result<(), Conflict> {
        for at in 0..self.cells.len() {
            let id = self.cells[at];
            match self.term(id) {
                Term::Sum(x, y) => {
                    for (one, other) in [(x, y), (y, x)] {
                        self.limit_by(id, one, self.bound(other, ZERO))?;
                        self.limit_by(one, id, self.bound(ZERO, other))?;
                    }
                }
                Term::Difference(x, y) => {
                    self.limit_by(id, ZERO, self.bound(x, y))?;
                    self.limit_by(ZERO, id, self.bound(y, x))?;
                    self.limit_by(id, x, self.bound(ZERO, y))?;
                    self.limit_by(x, id, self.bound(y, ZERO))?;
                }
                Term::Modulo(x, offset, divisor) => {
                    self.limit_by(id, ZERO, divisor - 1)?;
                    self.limit_by(ZERO, id, 0)?;
                    let (least, most) = (-self.bound(ZERO, x), self.bound(x, ZERO));
                    let small = most < FAR && least > -FAR;
                    if small && least + offset >= 0 && most + offset < divisor {
                        self.limit_by(id, x, offset)?;
                        self.limit_by(x, id, -offset)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn limit_by(&mut self, a: TermId, b: TermId, most: i64) -> Result<(), Conflict> {
        if most >= FAR { Ok(()) } else { self.limit(a, b, most) }
    }

    /// The sum of two numbers.
    pub fn sum(&mut self, left: Value, right: Value) -> Value {
        let offset = left.offset + right.offset;
        if left.term == ZERO || right.term == ZERO {
            return Value { term: left.term.max(right.term), offset };
        }
        let (one, other) = (left.term.min(right.term), left.term.max(right.term));
        Value { term: self.derived(Term::Sum(one, other)), offset }
    }

    /// The second number taken from the first.
    pub fn difference(&mut self, left: Value, right: Value) -> Value {
        let offset = left.offset - right.offset;
        if left.term == right.term {
            return Value { term: ZERO, offset };
        }
        if right.term == ZERO {
            return Value { term: left.term, offset };
        }
        Value { term: self.derived(Term::Difference(left.term, right.term)), offset }
    }

    /// The rest of a number when divided by a positive one.
    pub fn modulo(&mut self, inner: Value, divisor: i64) -> Value {
        if inner.term == ZERO {
            return Value { term: ZERO, offset: inner.offset.rem_euclid(divisor) };
        }
        let offset = inner.offset.rem_euclid(divisor);
        Value::of(self.derived(Term::Modulo(inner.term, offset, divisor)))
    }

    /// A number that is computed from others. Its place in the order is drawn when facts are next
    /// added; until then less is known than could be.
    fn derived(&mut self, term: Term) -> TermId {
        self.intern(term, Type::Int, true)
    }
}

/// Whether a term is found through others, so that facts about those say something about it.
fn is_derived(term: Term) -> bool {
    matches!(
        term,
        Term::Field(..)
            | Term::Element(..)
            | Term::Sum(..)
            | Term::Difference(..)
            | Term::Modulo(..)
    )
}

/// The bit of a term; none if there are too many terms.
fn bit(id: TermId) -> u128 {
    u32::try_from(id).ok().and_then(|id| 1_u128.checked_shl(id)).unwrap_or(0)
}

fn compare(holds: bool, fails: bool) -> Option<bool> {
    if holds {
        Some(true)
    } else if fails {
        Some(false)
    } else {
        None
    }
}
