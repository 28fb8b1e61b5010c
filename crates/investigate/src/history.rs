//! The **history** of some functions in a recording: every call with its arguments, and what it returned, in the
//! order in which that happened. Only one thread runs at a time while a program is recorded, so there is one.

use crate::case::Case;
use crate::check::recorded;
use crate::error::fault_or_input;
use crate::threads::Threads;
use anyhow::bail;
use base::{Address, PlaceName, ThreadNumber, Tick};
use events::decode::Decoder;
use events::plan::Stops;
use events::{Consumer, Event, Plan};
use replay::Shown;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use symbols::signature::Signature;

/// A function whose calls are looked at.
#[derive(Clone, Debug)]
pub struct Function {
    /// As it was asked for.
    pub name: String,
    /// Where it begins.
    pub entry: Address,
    /// What it takes and returns.
    pub signature: Signature,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which of the functions.
    pub function: usize,
    /// Who called.
    pub thread: ThreadNumber,
    /// How often the function had been called then, this call included.
    pub nth: u64,
    /// Its arguments, as its declaration has them.
    pub arguments: Vec<i64>,
    /// What it returned: nothing if it has not, or if its declaration says so.
    pub result: Option<i64>,
}

/// What happened to a call, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It began.
    Called(usize),
    /// It returned.
    Returned(usize),
}

/// All calls of some functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// In the order in which they began.
    pub calls: Vec<Call>,
    /// When they began and returned, in order.
    pub happened: Vec<Happened>,
}

/// Finds functions by name, in a program as it was recorded.
pub fn functions(case: &Case, process: u32, names: &[String]) -> anyhow::Result<Vec<Function>> {
    let program = case.program(&recorded::mapped(case.session(), process)?)?;
    let find = |name: &String| {
        let found = program.resolve(&PlaceName::Function(name.clone()))?;
        let whole: Vec<_> = found.iter().filter(|location| !location.inlined).collect();
        let entry = match (&whole[..], found.len()) {
            ([one], 1) => one.entry,
            ([], _) => bail!("{name} was inlined wherever it is called; build it with -fno-inline"),
            ([_], _) => bail!("some calls of {name} were inlined; build it with -fno-inline"),
            (several, _) => bail!("{} functions are called {name}; say which", several.len()),
        };
        let Some(signature) = program.signature_at(entry) else {
            bail!("what {name} takes and returns is not known; build it with -g");
        };
        Ok(Function { name: name.clone(), entry, signature })
    };
    names.iter().map(find).collect()
}

/// The calls of functions in one process, by one replay.
pub fn of(case: &Case, process: u32, functions: &[Function]) -> anyhow::Result<History> {
    let threads = Threads::of(case.recording(), process);
    let shared = Arc::new(Mutex::new(Watcher::new(functions.to_vec(), threads)));
    let entries = functions.iter().map(|function| function.entry.0).collect();
    let plan = Plan { stops: Stops::at_functions(entries), ..Plan::default() };
    let mut make = |_| -> Box<dyn Consumer> { Box::new(Shared(shared.clone())) };
    let replayed =
        case.session().replay(process, plan, Shown::Nothing, &mut make).map_err(fault_or_input)?;
    if let Some(divergence) = replayed.divergence {
        bail!(crate::error::OurFault(format!("the replay diverged: {}", divergence.what)));
    }
    let watcher = Arc::into_inner(shared).expect("the replay has ended");
    let watcher = watcher.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(watcher.history)
}

/// Follows the calls of functions in a stream of events.
struct Watcher {
    decoder: Decoder,
    functions: Vec<Function>,
    threads: Threads,
    running: ThreadNumber,
    /// Calls under way: function and where the return address stands, to the call's number.
    open: FxHashMap<(u64, u64), usize>,
    counts: Vec<u64>,
    history: History,
}

struct Shared(Arc<Mutex<Watcher>>);

impl Consumer for Shared {
    fn records(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).records(bytes);
    }
}

impl Watcher {
    fn new(functions: Vec<Function>, threads: Threads) -> Self {
        Self {
            decoder: Decoder::default(),
            counts: vec![0; functions.len()],
            functions,
            threads,
            running: ThreadNumber(1),
            open: FxHashMap::default(),
            history: History::default(),
        }
    }

    fn records(&mut self, bytes: &[u8]) {
        let mut events = Vec::new();
        // A stream that makes no sense is a divergence, which the replay reports.
        let _ = self.decoder.events(bytes, |event| events.push(event));
        events.into_iter().for_each(|event| self.event(event));
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Thread(kernel) => {
                self.running = self.threads.number(kernel as i32, Tick(u64::MAX));
            }
            Event::Enter { function, stack, arguments, .. } => {
                self.enter(function, stack, arguments);
            }
            Event::Return { function, stack, value } => self.leave(function, stack, value),
            _ => {}
        }
    }

    fn enter(&mut self, entry: u64, stack: u64, arguments: [u64; 6]) {
        let known = self.functions.iter().position(|function| function.entry.0 == entry);
        let Some(function) = known else { return };
        self.counts[function] += 1;
        let parameters = &self.functions[function].signature.parameters;
        let sized = parameters.iter().zip(arguments);
        let call = Call {
            function,
            thread: self.running,
            nth: self.counts[function],
            arguments: sized.map(|(parameter, value)| extended(value, parameter.size)).collect(),
            result: None,
        };
        let number = self.history.calls.len();
        self.open.insert((entry, stack), number);
        self.history.calls.push(call);
        self.history.happened.push(Happened::Called(number));
    }

    fn leave(&mut self, entry: u64, stack: u64, value: u64) {
        let Some(number) = self.open.remove(&(entry, stack)) else { return };
        let call = &mut self.history.calls[number];
        let returns = self.functions[call.function].signature.returns;
        call.result = returns.map(|size| extended(value, size));
        self.history.happened.push(Happened::Returned(number));
    }
}

/// A value of so many bytes as a number with its sign. Whether a type has one makes no difference as long as
/// arguments and results are taken alike.
fn extended(value: u64, size: u8) -> i64 {
    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
    ((value << unused) as i64) >> unused
}

#[cfg(test)]
mod tests {
    use super::extended;

    #[test]
    fn registers_are_numbers_of_their_size() {
        assert_eq!(extended(0xffff_ffff, 4), -1);
        assert_eq!(extended(0x1_0000_0005, 4), 5);
        assert_eq!(extended(u64::MAX, 8), -1);
        assert_eq!(extended(0x180, 1), -128);
    }
}
