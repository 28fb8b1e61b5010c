//! The core calculus of the reference (its section 3.2) as an executable, small-step interpreter:
//! slow, by substitution, one function a rule. It is the judge of the rules, so it shares nothing
//! with the detector but the [`State`] trait.
//!
//! Additions to the reference, where C programs go on and the calculus would be stuck: `free` of
//! NULL does nothing; NULL plus a number is still NULL; using a frame that is gone, leaving a stack
//! block, and dereferencing a number are errors too.

use analyze::rules::model::{EventKind, Set};
use analyze::rules::screen::{PointerState, Situation};
use analyze::rules::state::{
    Answer, BlockFacts, BlockId, Pointer, State, TraceEvent, Value as RuleValue, Visit,
};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks lie so far apart that no arithmetic of a test leads from one to another.
const APART: u64 = 1 << 20;

/// A value: an integer (0 is NULL) or a pointer to an index of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Int(i64),
    Pointer(BlockId, i64),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Value(Value),
    Var(String),
    LetSalloc(String, u64, Box<Expr>),
    Seq(Box<Expr>, Box<Expr>),
    Call(String, Box<Expr>),
    Ret(String, Box<Expr>),
    If0(Box<Expr>, Box<Expr>, Box<Expr>),
    Malloc(u64),
    Free(Box<Expr>),
    Read(Box<Expr>),
    Assign(Box<Expr>, Box<Expr>),
    PointerAdd(Box<Expr>, Box<Expr>),
}

/// `(b, n, k)`
#[derive(Clone, Debug)]
pub struct Block {
    contents: Vec<Option<Value>>,
    time: u64,
}

/// What the machine is about to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Redex {
    Read(Value),
    Write(Value),
    Free(Value),
    Return(String),
    Other,
}

/// The error states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    UnmatchedFree,
    DoubleFree,
    DanglingPointer,
    NullPointer,
    Overflow,
    Uninitialised,
    StackOverflow,
    UseAfterReturn,
    /// A number that is no pointer: the calculus of the reference is stuck here.
    Wild,
}

/// Functions: parameter and body.
pub type Functions = BTreeMap<String, (String, Expr)>;

/// `⟨H; F; S̄; k; σ⟩`; P is in the values themselves.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    heap: BTreeMap<BlockId, Block>,
    freed_heap: BTreeMap<BlockId, Block>,
    freed_stack: BTreeMap<BlockId, Block>,
    stack: Vec<BTreeMap<BlockId, Block>>,
    time: u64,
    trace: Vec<(EventKind, TraceEvent)>,
    next: u32,
    /// Pointers in the expression that is left to reduce.
    held: Vec<Pointer>,
}

/// How far a step got.
pub enum Stepped {
    To(Expr),
    Error(BTreeSet<Bug>),
}

fn address(value: Value) -> u64 {
    match value {
        Value::Int(number) => number as u64,
        Value::Pointer(block, index) => (u64::from(block.0) * APART).wrapping_add_signed(index),
    }
}

/// The value as rules see it.
pub fn pointer(value: Value) -> Pointer {
    let block = if let Value::Pointer(block, _) = value { Some(block) } else { None };
    Pointer { address: address(value), block }
}

impl Machine {
    fn fresh(&mut self) -> BlockId {
        self.next += 1;
        BlockId(self.next)
    }

    fn record(&mut self, kind: EventKind, arguments: Vec<RuleValue>) {
        self.trace.push((kind, TraceEvent { time: self.time, arguments }));
    }

    fn live(&self, block: BlockId) -> Option<&Block> {
        self.heap.get(&block).or_else(|| self.stack.iter().find_map(|frame| frame.get(&block)))
    }

    fn any(&self, block: BlockId) -> Option<&Block> {
        self.live(block)
            .or_else(|| self.freed_heap.get(&block))
            .or_else(|| self.freed_stack.get(&block))
    }

    fn inside(block: &Block, index: i64) -> bool {
        usize::try_from(index).is_ok_and(|index| index < block.contents.len())
    }

    /// The premises of the error rules.
    pub fn bugs(&self, redex: &Redex) -> BTreeSet<Bug> {
        let mut bugs = BTreeSet::new();
        match redex {
            Redex::Free(Value::Int(0)) | Redex::Return(_) | Redex::Other => {}
            Redex::Free(Value::Int(_)) => {
                bugs.insert(Bug::UnmatchedFree);
            }
            Redex::Free(Value::Pointer(block, index)) => {
                let (live, freed) =
                    (self.heap.contains_key(block), self.freed_heap.contains_key(block));
                if (!live && !freed) || *index != 0 {
                    bugs.insert(Bug::UnmatchedFree);
                }
                if freed && *index == 0 {
                    bugs.insert(Bug::DoubleFree);
                }
            }
            Redex::Read(value) | Redex::Write(value) => self.access_bugs(*value, redex, &mut bugs),
        }
        bugs
    }

    fn access_bugs(&self, value: Value, redex: &Redex, bugs: &mut BTreeSet<Bug>) {
        let (block, index) = match value {
            Value::Int(0..=4095) => {
                bugs.insert(Bug::NullPointer);
                return;
            }
            Value::Int(_) => {
                bugs.insert(Bug::Wild);
                return;
            }
            Value::Pointer(block, index) => (block, index),
        };
        if self.freed_heap.contains_key(&block) {
            bugs.insert(Bug::DanglingPointer);
        } else if self.freed_stack.contains_key(&block) {
            bugs.insert(Bug::UseAfterReturn);
        } else if let Some(found) = self.live(block) {
            let heap = self.heap.contains_key(&block);
            if !Self::inside(found, index) {
                bugs.insert(if heap { Bug::Overflow } else { Bug::StackOverflow });
            } else if matches!(redex, Redex::Read(_)) && found.contents[index as usize].is_none() {
                bugs.insert(Bug::Uninitialised);
            }
        }
    }

    /// What the next reduction is.
    pub fn redex(expr: &Expr) -> Redex {
        let inner = |expr: &Expr| Self::redex(expr);
        match expr {
            Expr::Seq(first, _) if !is_value(first) => inner(first),
            Expr::Call(_, argument) if !is_value(argument) => inner(argument),
            Expr::Ret(_, value) if !is_value(value) => inner(value),
            Expr::Ret(name, _) => Redex::Return(name.clone()),
            Expr::If0(guard, ..) if !is_value(guard) => inner(guard),
            Expr::Free(at) => value_of(at).map_or_else(|| inner(at), Redex::Free),
            Expr::Read(at) => value_of(at).map_or_else(|| inner(at), Redex::Read),
            Expr::Assign(at, what) => match (value_of(at), value_of(what)) {
                (None, _) => inner(at),
                (_, None) => inner(what),
                (Some(at), _) => Redex::Write(at),
            },
            Expr::PointerAdd(left, right) => match (value_of(left), value_of(right)) {
                (None, _) => inner(left),
                (_, None) => inner(right),
                _ => Redex::Other,
            },
            _ => Redex::Other,
        }
    }

    /// The pointers that an expression holds are pointers of the program.
    pub fn hold(&mut self, expr: &Expr) {
        self.held.clear();
        collect(expr, &mut self.held);
    }

    /// One reduction.
    pub fn step(&mut self, expr: Expr, functions: &Functions) -> Stepped {
        let bugs = self.bugs(&Self::redex(&expr));
        if !bugs.is_empty() {
            return Stepped::Error(bugs);
        }
        let next = self.reduce(expr, functions);
        self.time += 1;
        Stepped::To(next)
    }

    /// The congruence rule, then one rule a form.
    fn reduce(&mut self, expr: Expr, functions: &Functions) -> Expr {
        let go = |machine: &mut Self, inner: Box<Expr>| Box::new(machine.reduce(*inner, functions));
        match expr {
            Expr::Seq(first, rest) if is_value(&first) => *rest,
            Expr::Seq(first, rest) => Expr::Seq(go(self, first), rest),
            Expr::LetSalloc(name, size, body) => {
                let block = self.fresh();
                let fresh = Block { contents: vec![None; size as usize], time: self.time };
                self.stack.last_mut().expect("a frame").insert(block, fresh);
                substitute(*body, &name, Value::Pointer(block, 0))
            }
            Expr::Call(name, argument) => match value_of(&argument) {
                None => Expr::Call(name, go(self, argument)),
                Some(value) => self.call(name, value, functions),
            },
            Expr::Ret(name, value) => match value_of(&value) {
                None => Expr::Ret(name, go(self, value)),
                Some(value) => {
                    let frame = self.stack.pop().expect("a frame");
                    self.freed_stack.extend(frame);
                    let arguments = vec![RuleValue::Function(name), number(value)];
                    self.record(EventKind::Return, arguments);
                    Expr::Value(value)
                }
            },
            Expr::If0(guard, yes, no) => match value_of(&guard) {
                None => Expr::If0(go(self, guard), yes, no),
                Some(Value::Int(0)) => *yes,
                Some(_) => *no,
            },
            Expr::Malloc(size) => {
                let block = self.fresh();
                let fresh = Block { contents: vec![None; size as usize], time: self.time };
                self.heap.insert(block, fresh);
                let size = RuleValue::Number(i128::from(size));
                self.record(EventKind::Malloc, vec![size, RuleValue::Block(block)]);
                Expr::Value(Value::Pointer(block, 0))
            }
            Expr::Free(at) => match value_of(&at) {
                None => Expr::Free(go(self, at)),
                Some(value) => self.free(value),
            },
            Expr::Read(at) => match value_of(&at) {
                None => Expr::Read(go(self, at)),
                Some(Value::Pointer(block, index)) => {
                    let found = self.live(block).and_then(|live| live.contents[index as usize]);
                    Expr::Value(found.expect("no error rule applied"))
                }
                Some(Value::Int(_)) => unreachable!("an error rule applies"),
            },
            Expr::Assign(at, what) => match (value_of(&at), value_of(&what)) {
                (None, _) => Expr::Assign(go(self, at), what),
                (_, None) => Expr::Assign(at, go(self, what)),
                (Some(at), Some(what)) => self.assign(at, what),
            },
            Expr::PointerAdd(left, right) => match (value_of(&left), value_of(&right)) {
                (None, _) => Expr::PointerAdd(go(self, left), right),
                (_, None) => Expr::PointerAdd(left, go(self, right)),
                (Some(left), Some(right)) => Expr::Value(add(left, right)),
            },
            Expr::Value(_) | Expr::Var(_) => expr,
        }
    }

    fn call(&mut self, name: String, value: Value, functions: &Functions) -> Expr {
        self.record(EventKind::Call, vec![RuleValue::Function(name.clone()), number(value)]);
        self.stack.push(BTreeMap::new());
        let (parameter, body) = functions.get(&name).expect("a known function").clone();
        // let x = salloc 1 in (x := v; e)
        let store =
            Expr::Assign(Box::new(Expr::Var(parameter.clone())), Box::new(Expr::Value(value)));
        let body = Expr::Seq(Box::new(store), Box::new(body));
        Expr::LetSalloc(parameter, 1, Box::new(body))
    }

    fn free(&mut self, value: Value) -> Expr {
        if let Value::Pointer(block, _) = value
            && let Some(found) = self.heap.remove(&block)
        {
            self.freed_heap.insert(block, found);
            let at = RuleValue::Pointer(pointer(value));
            self.record(EventKind::Free, vec![at, RuleValue::Block(block)]);
        }
        Expr::Value(Value::Int(0))
    }

    fn assign(&mut self, at: Value, what: Value) -> Expr {
        let Value::Pointer(block, index) = at else { unreachable!("an error rule applies") };
        let frames = self.stack.iter_mut().flat_map(|frame| frame.iter_mut());
        let found = self.heap.iter_mut().chain(frames).find(|(id, _)| **id == block);
        found.expect("no error rule applied").1.contents[index as usize] = Some(what);
        let origin = RuleValue::Origin(format!("{what:?}"));
        let arguments = vec![RuleValue::Pointer(pointer(at)), number(what), origin];
        self.record(EventKind::Write, arguments);
        Expr::Value(what)
    }

    /// Blocks of the heap that were allocated after a function was last called: an oracle for the
    /// leak in a transaction that does not go through the rule.
    pub fn allocated_since_call(&self, function: &str) -> bool {
        let name = RuleValue::Function(function.to_owned());
        let called = |(kind, event): &&(EventKind, TraceEvent)| {
            *kind == EventKind::Call && event.arguments[0] == name
        };
        let Some((_, call)) = self.trace.iter().rev().find(called) else { return false };
        self.heap.values().any(|block| block.time > call.time)
    }

    /// Whether the heap has any block.
    pub fn has_heap(&self) -> bool {
        !self.heap.is_empty()
    }

    /// Whether a block of the heap is pointed to by no value in memory or in the expression.
    pub fn has_lost_block(&self) -> bool {
        let mut reached = BTreeSet::new();
        self.each(Set::Pointers, None, &mut |value| {
            if let RuleValue::Pointer(pointer) = value {
                reached.extend(pointer.block);
            }
            Visit::More
        });
        self.heap.keys().any(|block| !reached.contains(block))
    }

    /// The situation of an access as screens know it.
    pub fn situation(&self, value: Value) -> Situation {
        let written = matches!(value, Value::Pointer(block, index)
            if self.any(block).is_some_and(|found| Self::inside(found, index)
                && found.contents[index as usize].is_some()));
        let pointer_state = match value {
            Value::Int(0..=4095) => PointerState::Null,
            Value::Int(_) => PointerState::NoBlock,
            Value::Pointer(block, index) => match self.live(block) {
                None => PointerState::Freed,
                Some(found) if Self::inside(found, index) => PointerState::Inside,
                Some(_) => PointerState::Outside,
            },
        };
        Situation { pointer_state, written }
    }
}

impl State for Machine {
    fn facts(&self, block: BlockId) -> Option<BlockFacts> {
        let found = self.any(block)?;
        let region = if self.heap.contains_key(&block) || self.freed_heap.contains_key(&block) {
            1
        } else if self.freed_stack.contains_key(&block) {
            4
        } else {
            2
        };
        let (begin, size) = (u64::from(block.0) * APART, found.contents.len() as u64);
        Some(BlockFacts { begin, size, time: found.time, family: 0, region })
    }

    fn contents(&self, at: u64, _size: u64) -> Answer<i128> {
        let (block, index) = (BlockId((at / APART) as u32), (at % APART) as usize);
        let unit = self.any(block).and_then(|found| found.contents.get(index).copied().flatten());
        unit.map_or(Answer::Nothing, |value| Answer::Is(i128::from(address(value))))
    }

    fn width(&self) -> u64 {
        1
    }

    fn releaser(&self) -> base::allocator::Family {
        0
    }

    /// Goes through the whole set, whatever the key.
    fn each(&self, set: Set, _key: Option<&RuleValue>, visit: &mut dyn FnMut(RuleValue) -> Visit) {
        let blocks = |blocks: &BTreeMap<BlockId, Block>| -> Vec<RuleValue> {
            blocks.keys().map(|id| RuleValue::Block(*id)).collect()
        };
        let all = match set {
            Set::Heap => blocks(&self.heap),
            Set::Freed => blocks(&self.freed_heap),
            Set::Descriptors => Vec::new(),
            Set::Pointers => {
                let live = self.heap.values().chain(self.stack.iter().flat_map(BTreeMap::values));
                let stored = live.flat_map(|block| block.contents.iter().flatten());
                let pointers = stored.filter(|value| matches!(value, Value::Pointer(..)));
                let held = self.held.iter().copied();
                held.chain(pointers.map(|&value| pointer(value))).map(RuleValue::Pointer).collect()
            }
        };
        for value in all {
            if visit(value) == Visit::Enough {
                return;
            }
        }
    }

    /// Searches the whole trace, whatever the key.
    fn events(
        &self,
        kind: EventKind,
        _key: Option<&RuleValue>,
        newest_first: bool,
        visit: &mut dyn FnMut(&TraceEvent) -> Visit,
    ) {
        let mut found: Vec<&TraceEvent> =
            self.trace.iter().filter(|(known, _)| *known == kind).map(|(_, event)| event).collect();
        if newest_first {
            found.reverse();
        }
        for event in found {
            if visit(event) == Visit::Enough {
                return;
            }
        }
    }
}

fn is_value(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(_))
}

fn value_of(expr: &Expr) -> Option<Value> {
    if let Expr::Value(value) = expr { Some(*value) } else { None }
}

fn number(value: Value) -> RuleValue {
    match value {
        Value::Int(number) => RuleValue::Number(i128::from(number)),
        Value::Pointer(..) => RuleValue::Pointer(pointer(value)),
    }
}

fn add(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Pointer(block, index), Value::Int(by)) => Value::Pointer(block, index + by),
        (Value::Int(one), Value::Int(other)) => Value::Int(one + other),
        (Value::Int(_), Value::Pointer(..)) | (Value::Pointer(..), Value::Pointer(..)) => {
            Value::Int(-1)
        }
    }
}

fn collect(expr: &Expr, out: &mut Vec<Pointer>) {
    match expr {
        Expr::Value(value @ Value::Pointer(..)) => out.push(pointer(*value)),
        Expr::Value(_) | Expr::Var(_) | Expr::Malloc(_) => {}
        Expr::LetSalloc(_, _, inner)
        | Expr::Call(_, inner)
        | Expr::Ret(_, inner)
        | Expr::Free(inner)
        | Expr::Read(inner) => collect(inner, out),
        Expr::Seq(one, other) | Expr::Assign(one, other) | Expr::PointerAdd(one, other) => {
            collect(one, out);
            collect(other, out);
        }
        Expr::If0(guard, yes, no) => [guard, yes, no].iter().for_each(|one| collect(one, out)),
    }
}

/// `e[x/v]`
fn substitute(expr: Expr, name: &str, value: Value) -> Expr {
    let go = |inner: Box<Expr>| Box::new(substitute(*inner, name, value));
    match expr {
        Expr::Var(found) if found == name => Expr::Value(value),
        Expr::LetSalloc(found, size, body) if found == name => Expr::LetSalloc(found, size, body),
        Expr::LetSalloc(found, size, body) => Expr::LetSalloc(found, size, go(body)),
        Expr::Seq(first, rest) => Expr::Seq(go(first), go(rest)),
        Expr::Call(function, argument) => Expr::Call(function, go(argument)),
        Expr::Ret(function, inner) => Expr::Ret(function, go(inner)),
        Expr::If0(guard, yes, no) => Expr::If0(go(guard), go(yes), go(no)),
        Expr::Free(inner) => Expr::Free(go(inner)),
        Expr::Read(inner) => Expr::Read(go(inner)),
        Expr::Assign(at, what) => Expr::Assign(go(at), go(what)),
        Expr::PointerAdd(left, right) => Expr::PointerAdd(go(left), go(right)),
        other @ (Expr::Value(_) | Expr::Var(_) | Expr::Malloc(_)) => other,
    }
}
