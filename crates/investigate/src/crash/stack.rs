//! The active calls of the crashed thread, as a reader wants them: numbered, with arguments,
//! inlined ones marked, and runaway recursion folded.

use base::{Address, Place, Role, Step};
use serde::Serialize;
use std::path::Path;
use symbols::unwind::StackEnd;
use symbols::{FoundBy, Frame, Level, Printing, Program, Scene};

/// Arguments are shown no longer than this.
const ARGUMENT: Printing = Printing { depth: 1, elements: 4, text: 32, total: 64 };
/// Calls whose arguments are looked up; there are many more only in runaway recursion.
const MOST_ARGUMENTS: usize = 100;
/// The most calls that one turn of a recursion may have to be recognised.
const LONGEST_TURN: usize = 8;
/// Characters shown of a function's name.
const LONGEST_NAME: usize = 80;
/// Calls shown further out than the program's own: enough for the start of a C program.
const BEYOND: usize = 3;
/// A recursion is folded if that saves at least so many lines.
const WORTH_FOLDING: usize = 6;
/// Lines shown at most, at the inner and at the outer end.
const INNER: usize = 24;
const OUTER: usize = 6;

/// An active call.
#[derive(Clone, Serialize)]
pub struct Call {
    /// 0 is the innermost.
    pub number: usize,
    /// The function, demangled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// How far into the function, by the symbol table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The file that the code is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Where the code is in the addresses of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module_offset: Option<u64>,
    /// The instruction, or that behind the call.
    pub address: Address,
    /// Source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Whether the compiler put the function's code into its caller's.
    pub inlined: bool,
    /// Names and values of the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<(String, String)>,
    /// Whether it is the frame that the kernel made for a signal handler.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub signal: bool,
    /// How the frame was found.
    pub found_by: FoundBy,
}

/// A scene's calls, innermost first.
pub fn calls(scene: &Scene<'_>) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    for call in scene.each_call() {
        let frame = &scene.stack.frames[call.level.frame];
        if let (Some(inner), Some(last)) = (levels.last(), calls.last_mut()) {
            last.inlined = inner.frame == call.level.frame;
        }
        let (symbol, module) = placed(scene.program, frame);
        let interrupted = scene.stack.frames.get(call.level.frame + 1);
        let number = calls.len();
        calls.push(Call {
            number,
            offset: symbol.filter(|(name, _)| call.function.as_ref() == Some(name)).map(|s| s.1),
            function: call.function,
            module: module.as_ref().map(|(path, _)| path.clone()),
            module_offset: module.map(|(_, offset)| offset),
            address: call.pc,
            file: call.line.as_ref().map(|line| line.file.clone()),
            line: call.line.map(|line| line.line),
            inlined: false,
            arguments: Vec::new(),
            signal: interrupted.is_some_and(|outer| outer.exact),
            found_by: call.found_by,
        });
        levels.push(call.level);
    }
    for (call, level) in calls.iter_mut().zip(levels).take(MOST_ARGUMENTS) {
        if call.is_own() {
            call.arguments = arguments(scene, level);
        }
    }
    calls
}

type Symbol = (String, u64);

/// Function and file, each with how far into it the frame is.
fn placed(program: &Program, frame: &Frame) -> (Option<Symbol>, Option<Symbol>) {
    let code = frame.code();
    let module = program.locate(code).map(|(loaded, _)| {
        let path = loaded.loaded().path.display().to_string();
        (path, frame.pc.0.wrapping_sub(loaded.bias()))
    });
    let symbol = program.symbolise(code).symbol;
    let behind = frame.pc.0.wrapping_sub(code.0);
    (symbol.map(|(name, offset)| (name, offset.wrapping_add(behind))), module)
}

fn arguments(scene: &Scene<'_>, level: Level) -> Vec<(String, String)> {
    let parameters = scene.locals(level).into_iter().filter(|variable| variable.parameter);
    parameters
        .map(|variable| {
            let value = scene.value_of(&variable);
            let known = value.held.why_lost().is_none() && scene.bytes(&value).is_ok();
            let text = if known { scene.print(&value, &ARGUMENT) } else { "?".into() };
            (variable.name, text)
        })
        .collect()
}

impl Call {
    /// The place for findings.
    pub fn place(&self) -> Place {
        Place {
            file: self.file.clone(),
            line: self.line,
            function: self.function.clone(),
            address: Some(self.address),
        }
    }

    /// Whether the call is in code of the program's own authors, as far as file names tell.
    pub fn is_own(&self) -> bool {
        self.place().is_own()
    }

    fn step(&self) -> Step {
        let place = Place { function: self.function.as_deref().map(abridged), ..self.place() };
        Step::new(format!("#{} {}", self.number, self.words())).as_a(Role::Call).at(place)
    }

    fn words(&self) -> String {
        if self.signal {
            return format!("{} (a signal arrived here and its handler was called)", self.address);
        }
        let module = self.module.as_deref().map(file_name);
        let inside = match (module, self.module_offset) {
            (Some(module), Some(offset)) => format!(" in {module}+{offset:#x}"),
            _ => ", where no file is mapped".into(),
        };
        let mut words = match (&self.function, self.line) {
            (Some(function), Some(_)) => called(&abridged(function), &self.arguments),
            (Some(function), None) => match self.offset {
                Some(offset) => format!("{}+{offset:#x}{inside}", abridged(function)),
                None => format!("{}{inside}", abridged(function)),
            },
            (None, _) => format!("{}{inside}", self.address),
        };
        words += match (self.inlined, self.found_by) {
            (true, _) => " (inlined)",
            (_, FoundBy::Scan) => " (a guess)",
            _ => "",
        };
        words
    }
}

/// `name(a=1, b=2)`; names of C++ and Rust may have their parameter types already.
fn called(function: &str, arguments: &[(String, String)]) -> String {
    let given: Vec<String> =
        arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    match (given.is_empty(), function.ends_with(')')) {
        (true, _) => function.to_owned(),
        (false, false) => format!("{function}({})", given.join(", ")),
        (false, true) => format!("{function} [{}]", given.join(", ")),
    }
}

/// Names of C++ and Rust can be longer than a screen. What they begin and end with tells most.
fn abridged(function: &str) -> String {
    let length = function.chars().count();
    if length <= LONGEST_NAME {
        return function.to_owned();
    }
    let (begin, end) = (LONGEST_NAME / 2, LONGEST_NAME - LONGEST_NAME / 2 - 1);
    let inner = function.chars().take(begin).chain(['…']);
    inner.chain(function.chars().skip(length - end)).collect()
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

/// The calls as steps of evidence, the repetitive and the many left out.
pub fn steps(calls: &[Call], end: StackEnd, cut: bool) -> Vec<Step> {
    let last_own = calls.iter().rposition(Call::is_own);
    let beyond = last_own.map_or(0, |last| (calls.len() - 1 - last).saturating_sub(BEYOND));
    if beyond > 1 {
        let mut steps = steps(&calls[..calls.len() - beyond], StackEnd::Outermost, cut);
        steps.push(Step::new(format!("… {beyond} more calls, none of them the program's own")));
        return steps;
    }
    let mut steps = folded(calls);
    if steps.len() > INNER + OUTER + 1 {
        let left_out = steps.len() - INNER - OUTER;
        steps.splice(INNER..INNER + left_out, [Step::new(format!("… {left_out} lines left out"))]);
    }
    let words = match end {
        StackEnd::Outermost => return steps,
        StackEnd::TooMany => "… and more",
        StackEnd::Lost if cut => "… and more, further up the stack than the report reaches",
        // Code that starts a program or a thread need not say that it is the outermost.
        StackEnd::Lost if calls.last().is_some_and(is_start) => return steps,
        StackEnd::Lost => "… its caller could not be found",
    };
    steps.push(Step::new(words));
    steps
}

fn is_start(call: &Call) -> bool {
    matches!(call.function.as_deref(), Some("_start" | "clone" | "clone3" | "__clone"))
}

fn folded(calls: &[Call]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = 0;
    while at < calls.len() {
        let (turn, repeats) = recursion(&calls[at..]);
        if repeats.saturating_sub(1) * turn < WORTH_FOLDING {
            steps.push(calls[at].step());
            at += 1;
            continue;
        }
        steps.extend(calls[at..at + turn].iter().map(Call::step));
        let again = if turn == 1 { "the same call".into() } else { format!("these {turn} calls") };
        steps.push(Step::new(format!("… {again} again, {} times", repeats - 1)));
        at += turn * repeats;
    }
    steps
}

/// How many calls repeat from the first on, and how often they are there.
fn recursion(calls: &[Call]) -> (usize, usize) {
    let code = |call: &Call| (call.address, call.function.clone());
    let repeats = |turn: usize| {
        let first = &calls[..turn];
        let same = |next: &[Call]| next.iter().map(code).eq(first.iter().map(code));
        1 + calls[turn..].chunks_exact(turn).take_while(|next| same(next)).count()
    };
    let turns = (1..=LONGEST_TURN.min(calls.len())).map(|turn| (turn, repeats(turn)));
    turns
        .max_by_key(|(turn, repeats)| (repeats.saturating_sub(1) * turn, usize::MAX - turn))
        .unwrap_or((1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: usize, address: u64) -> Call {
        Call {
            number,
            function: Some(format!("f{address}")),
            offset: None,
            module: None,
            module_offset: None,
            address: Address(address),
            file: None,
            line: Some(1),
            inlined: false,
            arguments: Vec::new(),
            signal: false,
            found_by: FoundBy::CallFrameInfo,
        }
    }

    fn texts(addresses: impl IntoIterator<Item = u64>, end: StackEnd) -> Vec<String> {
        let calls: Vec<Call> = addresses
            .into_iter()
            .enumerate()
            .map(|(number, address)| call(number, address))
            .collect();
        steps(&calls, end, false).into_iter().map(|step| step.text).collect()
    }

    #[test]
    fn recursion_is_folded_whatever_its_turn() {
        let mutual = (0..400).map(|n| n % 2).chain([7, 8]);
        let expected = ["#0 f0", "#1 f1", "… these 2 calls again, 199 times", "#400 f7", "#401 f8"];
        assert_eq!(texts(mutual, StackEnd::Outermost), expected);
        let single = [9].into_iter().chain([3; 100]);
        let expected = [
            "#0 f9",
            "#1 f3",
            "… the same call again, 99 times",
            "… its caller could not be found",
        ];
        assert_eq!(texts(single, StackEnd::Lost), expected);
    }

    #[test]
    fn many_different_calls_are_cut_in_the_middle() {
        let shown = texts(0..1000, StackEnd::Outermost);
        assert_eq!(shown.len(), INNER + OUTER + 1);
        assert_eq!(shown[INNER], "… 970 lines left out");
        assert_eq!(shown[INNER + OUTER], "#999 f999");
        assert_eq!(texts(0..3, StackEnd::Outermost).len(), 3);
    }
}
