//! A slow and obvious slicer: one pass forwards that notes for every byte and register part by
//! which definition it was made, a stack of open regions for control, then a search in the graph
//! that this gives. It shares with the tool what instructions mean and the graph of control flow,
//! and nothing else: not the reading of records, not post-dominators, not going backwards.

use analyze::dependence::control::{Control, Node};
use analyze::semantics::{Flow, Form, Meaning, Parts, Shuttle, Side, Span, StringOp, Uses};
use analyze::slice::{Follow, Kind};
use events::decode::Record;
use events::{Decoder, Event};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// A definition: by which execution, from which definitions.
struct Definition {
    by: usize,
    from: Vec<(usize, Kind)>,
}

/// An execution.
struct Execution {
    pc: u64,
    thread: u32,
    /// The execution that decided about it, and the definitions that its own decision used.
    decided_by: Option<usize>,
    decision: Vec<(usize, Kind)>,
    /// Whether it counts as an instruction: system calls do not.
    instruction: bool,
}

/// A value that is asked about, as if it were made anew at a moment.
#[derive(Clone, Debug)]
pub struct Seed {
    pub thread: u32,
    pub moment: u64,
    pub parts: Parts,
    pub memory: Vec<(u64, u64)>,
}

/// How to look at a stream.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether saved registers are passed by.
    pub bypass: bool,
    pub prune_parts: Parts,
    pub prune_memory: Vec<(u64, u64)>,
    pub seed: Option<Seed>,
}

/// What may be in a slice.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// All threads if none are given.
    pub threads: Vec<u32>,
    /// Edges from the question; any number if none is given.
    pub depth: Option<u32>,
    pub within: Option<BTreeSet<u64>>,
}

/// Registers pushed: who, in which frame, which register, the definitions of its parts.
struct Saved {
    frame: usize,
    register: u8,
    parts: Vec<(u8, Option<usize>)>,
}

struct Thread {
    parts: HashMap<u8, usize>,
    frames: Vec<Frame>,
    /// Whether it has sent a signal to itself, whose handler comes next.
    signalled: bool,
    /// Its last execution.
    last: usize,
}

struct Frame {
    id: usize,
    /// Open regions: deciding execution, node that ends it.
    open: Vec<(usize, Option<u32>)>,
    called_by: Option<usize>,
    /// Of a signal handler: what registers hold when it has returned.
    interrupted: Option<HashMap<u8, usize>>,
}

impl Frame {
    fn new(id: usize, called_by: Option<usize>) -> Self {
        Self { id, open: Vec::new(), called_by, interrupted: None }
    }
}

/// Everything that happened.
pub struct Reference<'a> {
    control: &'a Control,
    after: HashMap<u32, Option<u32>>,
    meanings: HashMap<u64, Rc<Meaning>>,
    definitions: Vec<Definition>,
    /// The definitions of each execution.
    made_by: Vec<Vec<usize>>,
    executions: Vec<Execution>,
    bytes: HashMap<u64, usize>,
    saved: HashMap<usize, Saved>,
    threads: HashMap<u32, Thread>,
    thread: u32,
    frames: usize,
    options: Options,
    /// The definitions of the seed, once it has been sown.
    sown: BTreeSet<usize>,
    /// Instruction number of each execution.
    pub moments: Vec<u64>,
}

type Access = (bool, u64, u64);

const RT_SIGRETURN: u64 = 15;
const KILL: u64 = 62;

impl<'a> Reference<'a> {
    /// Looks at a whole stream.
    pub fn of(stream: &[Vec<u8>], control: &'a Control, options: Options) -> Self {
        let mut reference = Self {
            control,
            after: HashMap::new(),
            meanings: meanings(stream),
            definitions: Vec::new(),
            made_by: Vec::new(),
            executions: Vec::new(),
            bytes: HashMap::new(),
            saved: HashMap::new(),
            threads: HashMap::new(),
            thread: 0,
            frames: 0,
            options,
            sown: BTreeSet::new(),
            moments: Vec::new(),
        };
        let mut decoder = Decoder::default();
        let mut open: Option<(u64, bool, Vec<Access>)> = None;
        let mut instructions = 0;
        for chunk in stream {
            let mut each = |event: Event| match event {
                Event::Access { address, size, write } => {
                    if let Some((_, _, accesses)) = &mut open {
                        accesses.push((write, address, size.into()));
                    }
                }
                other => {
                    if let Some((pc, completed, accesses)) = open.take() {
                        reference.executed(pc, completed, &accesses, &mut instructions);
                    }
                    match other {
                        Event::Instruction { pc, .. } => open = Some((pc, true, Vec::new())),
                        Event::Interrupted { pc } => open = Some((pc, false, Vec::new())),
                        Event::Thread(thread) => reference.thread = thread,
                        Event::Syscall { number, arguments, answer } => {
                            reference.system_call(number, &arguments, answer);
                        }
                        _ => {}
                    }
                }
            };
            decoder.events(chunk, &mut each).expect("well formed");
        }
        if let Some((pc, completed, accesses)) = open.take() {
            reference.executed(pc, completed, &accesses, &mut instructions);
        }
        reference.made_by.resize(reference.executions.len(), Vec::new());
        reference
    }

    /// The moments of the instructions that the value of memory at the end was made by.
    pub fn slice(&self, memory: &[(u64, u64)], follow: Follow, limits: &Limits) -> BTreeSet<u64> {
        // How far from the question the nearest execution is that wants a definition, or that an
        // execution decided about.
        let mut wanted: HashMap<usize, u32> = HashMap::new();
        let mut decided: HashMap<usize, u32> = HashMap::new();
        let want = |wanted: &mut HashMap<usize, u32>, what: usize, depth: u32| {
            let nearest = wanted.entry(what).or_insert(depth);
            *nearest = depth.min(*nearest);
        };
        for byte in memory.iter().flat_map(|(from, count)| *from..from + count) {
            if let Some(definition) = self.bytes.get(&byte).filter(|_| !self.is_pruned(byte)) {
                want(&mut wanted, *definition, 0);
            }
        }
        let follows = |(_, kind): &&(usize, Kind)| follow.follows(*kind);
        let mut inside = BTreeSet::new();
        for (by, execution) in self.executions.iter().enumerate().rev() {
            let own = &self.made_by[by];
            let users = own.iter().filter_map(|made| wanted.get(made)).chain(decided.get(&by));
            let Some(depth) = users.min().map(|nearest| nearest + 1) else { continue };
            if !self.takes_part(by, limits) {
                continue;
            }
            if execution.instruction {
                inside.insert(self.moments[by]);
            }
            if limits.depth.is_some_and(|most| depth >= most) {
                continue;
            }
            // The last first: a repeated move may read what it has written itself.
            for made in own.iter().rev() {
                if wanted.contains_key(made) {
                    for (used, _) in self.definitions[*made].from.iter().filter(follows) {
                        want(&mut wanted, *used, depth);
                    }
                }
            }
            if decided.contains_key(&by) {
                for (used, _) in execution.decision.iter().filter(follows) {
                    want(&mut wanted, *used, depth);
                }
            }
            if let Some(decider) = execution.decided_by.filter(|_| follow == Follow::Full) {
                want(&mut decided, decider, depth);
            }
        }
        inside
    }

    /// The moments of the instructions that made something from the seed, or went a way because
    /// of it.
    pub fn forward(&self, follow: Follow, limits: &Limits) -> BTreeSet<u64> {
        // By definition and by deciding execution: edges from the seed.
        let mut marked: HashMap<usize, u32> = self.sown.iter().map(|made| (*made, 0)).collect();
        let mut led: HashMap<usize, u32> = HashMap::new();
        let mut inside = BTreeSet::new();
        for (by, execution) in self.executions.iter().enumerate() {
            let decided = execution.decided_by.filter(|_| follow == Follow::Full);
            let decided = decided.and_then(|decider| led.get(&decider).copied());
            let nearest = |uses: &[(usize, Kind)], own: &HashMap<usize, u32>| {
                let followed = uses.iter().filter(|(_, kind)| follow.follows(*kind));
                followed.filter_map(|(used, _)| own.get(used).or(marked.get(used)).copied()).min()
            };
            let decision = nearest(&execution.decision, &HashMap::new());
            // The first first: a repeated move may read what it has written itself.
            let (mut own, mut seen): (Vec<(usize, Option<u32>)>, _) = (Vec::new(), HashMap::new());
            for made in &self.made_by[by] {
                let near = nearest(&self.definitions[*made].from, &seen);
                own.push((*made, near));
                seen.extend(near.map(|near| (*made, near)));
            }
            let reasons = own.iter().filter_map(|(_, nearest)| *nearest);
            let depth = reasons.chain(decided).chain(decision).min().map(|nearest| nearest + 1);
            let Some(depth) = depth.filter(|_| self.takes_part(by, limits)) else { continue };
            if execution.instruction {
                inside.insert(self.moments[by]);
            }
            if limits.depth.is_some_and(|most| depth >= most) {
                continue;
            }
            let carries = own.iter().filter(|(_, nearest)| nearest.is_some() || decided.is_some());
            marked.extend(carries.map(|(made, _)| (*made, depth)));
            if decided.is_some() || decision.is_some() {
                led.insert(by, depth);
            }
        }
        inside
    }

    fn takes_part(&self, by: usize, limits: &Limits) -> bool {
        let thread = self.executions[by].thread;
        (limits.threads.is_empty() || limits.threads.contains(&thread))
            && limits.within.as_ref().is_none_or(|within| within.contains(&self.moments[by]))
    }

    fn is_pruned(&self, byte: u64) -> bool {
        let pruned = &self.options.prune_memory;
        pruned.iter().any(|(from, count)| (*from..from + count).contains(&byte))
    }

    /// The address of an execution, by instruction number.
    pub fn pc(&self, moment: u64) -> u64 {
        let at = (0..self.moments.len())
            .find(|at| self.executions[*at].instruction && self.moments[*at] == moment);
        at.map_or(0, |at| self.executions[at].pc)
    }

    fn thread(&mut self) -> &mut Thread {
        let frames = &mut self.frames;
        self.threads.entry(self.thread).or_insert_with(|| {
            *frames += 1;
            let frames = vec![Frame::new(*frames, None)];
            Thread { parts: HashMap::new(), frames, signalled: false, last: usize::MAX }
        })
    }

    fn top(&mut self) -> &mut Frame {
        self.thread().frames.last_mut().expect("never empty")
    }

    fn define(&mut self, by: usize, from: Vec<(usize, Kind)>) -> usize {
        self.definitions.push(Definition { by, from });
        let made = self.definitions.len() - 1;
        self.made_by.resize(self.made_by.len().max(by + 1), Vec::new());
        self.made_by[by].push(made);
        made
    }

    fn of_parts(&mut self, parts: Parts, kind: Kind) -> Vec<(usize, Kind)> {
        let parts = parts.without(&self.options.prune_parts);
        let thread = self.thread();
        parts.iter().filter_map(|part| Some((*thread.parts.get(&part)?, kind))).collect()
    }

    fn of_bytes(&self, address: u64, bytes: u64) -> Vec<(usize, Kind)> {
        let bytes = (address..address + bytes).filter(|byte| !self.is_pruned(*byte));
        bytes.filter_map(|byte| Some((*self.bytes.get(&byte)?, Kind::Value))).collect()
    }

    /// An execution begins: which one decided about it?
    fn begin(&mut self, pc: u64, moment: u64, instruction: bool) -> usize {
        let by = self.executions.len();
        let node = self.control.node(pc);
        let starts = node.is_some_and(|node| self.control.nodes()[node as usize].start == pc);
        let top = self.top();
        if starts {
            while top.open.last().is_some_and(|(_, ends)| *ends == node) {
                top.open.pop();
            }
        }
        let decided_by = top.open.last().map(|(by, _)| *by).or(top.called_by);
        let thread = self.thread;
        let decision = Vec::new();
        self.executions.push(Execution { pc, thread, decided_by, decision, instruction });
        self.moments.push(moment);
        by
    }

    fn executed(&mut self, pc: u64, completed: bool, accesses: &[Access], count: &mut u64) {
        let meaning = self.meanings[&pc].clone();
        self.sow(*count);
        self.handle();
        let by = self.begin(pc, *count, completed);
        self.thread().last = by;
        *count += u64::from(completed);
        if let Some(uses) = &meaning.decides {
            self.executions[by].decision = self.used(&meaning, uses, accesses);
        }
        if let Some(operation) = meaning.repeats {
            self.string(by, operation, completed, accesses);
        } else if completed && !self.restore(by, &meaning, accesses) {
            self.flows(by, &meaning, accesses);
        }
        if completed {
            self.go(by, pc, meaning.form);
        }
    }

    /// A signal that the thread has sent to itself is handled: the kernel gives the handler its
    /// arguments, and when it returns registers are what they were.
    fn handle(&mut self) {
        if !std::mem::take(&mut self.thread().signalled) {
            return;
        }
        self.frames += 1;
        let mut frame = Frame::new(self.frames, None);
        let thread = self.thread();
        frame.interrupted = Some(thread.parts.clone());
        thread.frames.push(frame);
        for register in [0, 7, 6, 2] {
            for part in Parts::general(register, 0, 8).iter() {
                thread.parts.remove(&part);
            }
        }
    }

    /// A handler returns.
    fn resume(&mut self) {
        let thread = self.thread();
        while let Some(frame) = thread.frames.pop() {
            if let Some(parts) = frame.interrupted {
                thread.parts = parts;
                break;
            }
        }
    }

    /// Makes what is asked about anew, when its moment has come.
    fn sow(&mut self, moment: u64) {
        let Some(seed) = self.options.seed.clone().filter(|seed| seed.moment == moment) else {
            return;
        };
        if !self.sown.is_empty() {
            return;
        }
        let by = self.executions.len();
        let (pc, thread, decision) = (0, seed.thread, Vec::new());
        let execution = Execution { pc, thread, decided_by: None, decision, instruction: false };
        self.executions.push(execution);
        self.moments.push(moment);
        let made = self.define(by, Vec::new());
        self.sown.insert(made);
        let running = std::mem::replace(&mut self.thread, seed.thread);
        for part in seed.parts.without(&self.options.prune_parts).iter() {
            self.thread().parts.insert(part, made);
        }
        self.thread = running;
        for byte in seed.memory.iter().flat_map(|(from, count)| *from..from + count) {
            if !self.is_pruned(byte) {
                self.bytes.insert(byte, made);
            }
        }
    }

    /// Frames and regions after an instruction.
    fn go(&mut self, by: usize, pc: u64, form: Form) {
        let node = self.control.node(pc);
        match form {
            Form::Call(_) | Form::IndirectCall => {
                self.frames += 1;
                let frame = Frame::new(self.frames, Some(by));
                self.thread().frames.push(frame);
            }
            Form::Return => {
                self.frames += 1;
                let fresh = Frame::new(self.frames, None);
                let frames = &mut self.thread().frames;
                // A handler returns to what calls the kernel.
                if frames.last().is_some_and(|top| top.interrupted.is_none()) {
                    frames.pop();
                }
                if frames.is_empty() {
                    frames.push(fresh);
                }
            }
            Form::Jump(_) | Form::IndirectJump if self.control.is_tail(pc) => {
                let top = self.top();
                top.open.clear();
                top.called_by = Some(by);
            }
            Form::Branch(_) | Form::IndirectJump => {
                let Some(node) = node else { return };
                if self.control.nodes()[node as usize].next.len() > 1 {
                    let ends = self.comes_after(node);
                    self.top().open.push((by, ends));
                }
            }
            _ => {}
        }
    }

    /// The first node that every way from `node` to an exit goes through, by definition.
    fn comes_after(&mut self, node: u32) -> Option<u32> {
        if let Some(known) = self.after.get(&node) {
            return *known;
        }
        let nodes = self.control.nodes();
        let reachable = reachable(nodes, node, None);
        let certain: Vec<u32> = reachable
            .iter()
            .copied()
            .filter(|other| *other != node && !escapes(nodes, node, Some(*other)))
            .collect();
        // Of those, the one that comes before all others.
        let first = certain.iter().copied().find(|first| {
            certain.iter().all(|other| other == first || !escapes(nodes, *first, Some(*other)))
        });
        self.after.insert(node, first);
        first
    }

    /// A register restored from where this same frame has saved it keeps the definitions that it
    /// had then.
    fn restore(&mut self, by: usize, meaning: &Meaning, accesses: &[Access]) -> bool {
        match (meaning.shuttle, accesses) {
            (Some(Shuttle::Save(register)), [(true, ..)]) => {
                let frame = self.top().id;
                let thread = self.thread();
                let parts = Parts::general(register, 0, 8).iter();
                let parts = parts.map(|part| (part, thread.parts.get(&part).copied())).collect();
                self.saved.insert(by, Saved { frame, register, parts });
                false
            }
            (Some(Shuttle::Restore(register)), [(false, address, 8), ..])
                if self.options.bypass =>
            {
                let makers: BTreeSet<Option<usize>> = (*address..address + 8)
                    .map(|byte| self.bytes.get(&byte).map(|made| self.definitions[*made].by))
                    .collect();
                let frame = self.top().id;
                let [Some(maker)] = makers.into_iter().collect::<Vec<_>>()[..] else {
                    return false;
                };
                let Some(saved) = self.saved.get(&maker) else { return false };
                if (saved.frame, saved.register) != (frame, register) {
                    return false;
                }
                let parts = saved.parts.clone();
                let thread = self.thread();
                for (part, definition) in parts {
                    match definition {
                        Some(definition) => thread.parts.insert(part, definition),
                        None => thread.parts.remove(&part),
                    };
                }
                true
            }
            _ => false,
        }
    }

    fn address_uses(&mut self, meaning: &Meaning, span: Span) -> Vec<(usize, Kind)> {
        match span.side {
            Side::Memory(slot) => {
                self.of_parts(meaning.memory[usize::from(slot)].address, Kind::Address)
            }
            _ => Vec::new(),
        }
    }

    fn used(&mut self, meaning: &Meaning, uses: &Uses, accesses: &[Access]) -> Vec<(usize, Kind)> {
        let mut from = self.of_parts(uses.values, Kind::Value);
        from.extend(self.of_parts(uses.conditions, Kind::Control));
        for read in &uses.reads {
            let Side::Memory(slot) = read.side else { continue };
            let Some((_, address, _)) = accesses.get(usize::from(slot)) else { continue };
            from.extend(self.of_bytes(address + u64::from(read.from), read.bytes.into()));
            from.extend(self.address_uses(meaning, *read));
        }
        from
    }

    fn flows(&mut self, by: usize, meaning: &Meaning, accesses: &[Access]) {
        let regular = accesses.len() == meaning.memory.len();
        assert!(regular, "the programs of these tests have no gathers and the like");
        // All uses are looked up before anything is defined.
        let mut parts: Vec<(Parts, usize)> = Vec::new();
        let mut bytes: Vec<(u64, usize)> = Vec::new();
        for flow in &meaning.flows {
            match flow {
                Flow::Copy { to, from } => {
                    for (mask, target) in self.pieces(*to) {
                        let mut uses = self.address_uses(meaning, *to);
                        match from.side {
                            Side::Memory(slot) => {
                                let address = accesses[usize::from(slot)].1 + u64::from(from.from);
                                for byte in (0..64).filter(|byte| mask >> byte & 1 == 1) {
                                    uses.extend(self.of_bytes(address + byte, 1));
                                }
                                uses.extend(self.address_uses(meaning, *from));
                            }
                            _ => {
                                let source = from.some_parts(mask as u32);
                                uses.extend(self.of_parts(source, Kind::Value));
                            }
                        }
                        let made = self.define(by, uses);
                        match to.side {
                            Side::Memory(slot) => {
                                let address = accesses[usize::from(slot)].1 + u64::from(to.from);
                                bytes.push((address + u64::from(mask.trailing_zeros()), made));
                            }
                            _ => parts.push((target, made)),
                        }
                    }
                }
                Flow::Make { parts: made, write, uses, .. } => {
                    let from = self.used(meaning, uses, accesses);
                    if !made.is_empty() {
                        let definition = self.define(by, from.clone());
                        parts.push((*made, definition));
                    }
                    if let Some(write) = write
                        && let Side::Memory(slot) = write.side
                    {
                        let mut from = from;
                        from.extend(self.address_uses(meaning, *write));
                        let definition = self.define(by, from);
                        let address = accesses[usize::from(slot)].1 + u64::from(write.from);
                        bytes
                            .extend((0..u64::from(write.bytes)).map(|b| (address + b, definition)));
                    }
                }
            }
        }
        let thread = self.thread();
        for (parts, definition) in parts {
            for part in parts.iter() {
                // A frame pointer is made from nothing, and is in no slice.
                match (!meaning.frame).then_some(definition) {
                    Some(definition) => thread.parts.insert(part, definition),
                    None => thread.parts.remove(&part),
                };
            }
        }
        self.bytes.extend(bytes);
    }

    /// The parts (or bytes of memory) of a span, with the bytes of each.
    fn pieces(&self, span: Span) -> Vec<(u64, Parts)> {
        match span.side {
            Side::Memory(_) => (0..span.bytes).map(|byte| (1 << byte, Parts::NONE)).collect(),
            _ => span
                .parts()
                .iter()
                .map(|part| (span.bytes_in(&Parts::numbered(part)).into(), Parts::numbered(part)))
                .collect(),
        }
    }

    fn string(&mut self, by: usize, operation: StringOp, completed: bool, accesses: &[Access]) {
        if accesses.is_empty() {
            return;
        }
        let whole = |number| Parts::general(number, 0, 8);
        let (rcx, rsi, rdi) = (whole(1), whole(6), whole(7));
        let size = accesses[0].2;
        let accumulator = Parts::general(0, 0, size as u8);
        let mut addresses = self.of_parts(rdi, Kind::Address);
        addresses.extend(self.of_parts(rcx, Kind::Control));
        let values = |reference: &mut Self, parts| reference.of_parts(parts, Kind::Value);
        match operation {
            StringOp::Moves => {
                addresses.extend(self.of_parts(rsi, Kind::Address));
                for pair in accesses.chunks(2) {
                    let [(_, source, _), (_, target, _)] = pair[..] else { break };
                    let from: Vec<_> = (0..size).map(|b| self.of_bytes(source + b, 1)).collect();
                    for (byte, mut from) in (0..).zip(from) {
                        from.extend(&addresses);
                        let made = self.define(by, from);
                        self.bytes.insert(target + byte, made);
                    }
                }
            }
            StringOp::Stores => {
                let mut from = values(self, accumulator);
                from.extend(&addresses);
                let made = self.define(by, from);
                for (_, target, _) in accesses {
                    self.bytes.extend((0..size).map(|byte| (target + byte, made)));
                }
            }
            other => panic!("the programs of these tests do not use {other:?}"),
        }
        let set = |reference: &mut Self, parts: Parts, from: Vec<(usize, Kind)>| {
            let made = reference.define(by, from);
            parts.iter().for_each(|part| {
                reference.thread().parts.insert(part, made);
            });
        };
        let moved = values(self, rdi | rcx);
        let moved_source = values(self, rsi | rcx);
        let counted = if completed { Vec::new() } else { values(self, rcx) };
        set(self, rdi, moved);
        if operation == StringOp::Moves {
            set(self, rsi, moved_source);
        }
        set(self, rcx, counted);
    }

    fn system_call(&mut self, number: u64, arguments: &[u64; 6], answer: i64) {
        // The call belongs to the thread's last instruction, which is in the slice with it.
        let by = self.thread().last;
        let form = self.meanings[&self.executions[by].pc].form;
        assert_eq!(form, Form::Syscall, "a system call follows its instruction");
        let made = self.define(by, Vec::new());
        for part in Parts::general(0, 0, 8).iter() {
            self.thread().parts.insert(part, made);
        }
        match number {
            RT_SIGRETURN => self.resume(),
            KILL => self.thread().signalled = true,
            _ => {}
        }
        for (address, bytes) in
            analyze::dependence::system_calls::written(number, arguments, answer)
        {
            if bytes < 1 << 16 {
                self.bytes.extend((address..address + bytes).map(|byte| (byte, made)));
            }
        }
    }
}

/// What every instruction of the stream does.
fn meanings(stream: &[Vec<u8>]) -> HashMap<u64, Rc<Meaning>> {
    let mut decoder = Decoder::default();
    let mut factory = iced_x86::InstructionInfoFactory::new();
    let mut found = HashMap::new();
    for chunk in stream {
        let each = |record: Record<'_, '_>| {
            let Record::Path(path) = record else { return };
            for instruction in &path.shape.instructions {
                found.entry(instruction.pc).or_insert_with(|| {
                    let (code, pc) = (instruction.code(), instruction.pc);
                    let decoded = iced_x86::Decoder::with_ip(64, code, pc, 0).decode();
                    Rc::new(Meaning::of(&decoded, &mut factory))
                });
            }
        };
        decoder.records(chunk, each).expect("well formed");
    }
    found
}

fn reachable(nodes: &[Node], from: u32, without: Option<u32>) -> BTreeSet<u32> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(node) = open.pop() {
        if Some(node) != without && seen.insert(node) {
            open.extend(&nodes[node as usize].next);
        }
    }
    seen
}

/// Whether an exit can be reached without passing a node. A part of the graph without any exit is
/// left at its first node.
fn escapes(nodes: &[Node], from: u32, without: Option<u32>) -> bool {
    if Some(from) == without {
        return false;
    }
    let seen = reachable(nodes, from, without);
    seen.iter().any(|node| nodes[*node as usize].leaves || is_lost_first(nodes, *node))
}

/// Whether no exit can be reached from here, and the node is the first of such.
fn is_lost_first(nodes: &[Node], node: u32) -> bool {
    let reach = reachable(nodes, node, None);
    let lost = |node: u32| !reachable(nodes, node, None).iter().any(|n| nodes[*n as usize].leaves);
    !reach.iter().any(|node| nodes[*node as usize].leaves)
        && (0..node).all(|before| !reachable(nodes, before, None).contains(&node) || !lost(before))
        && reach.iter().all(|other| *other >= node || !lost(*other))
}
