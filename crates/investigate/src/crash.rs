//! A fatal signal of the guest, explained: the finding that it is, and what only a crash has.
//!
//! [`cause`] says what happened, [`instruction`] what was being executed, [`stack`] who called;
//! [`memory`] is the guest's memory as the runner kept it. Everything in a report is a guest's
//! doing: whatever the registers and the stack hold, nothing here panics.

mod cause;
mod instruction;
mod memory;
mod stack;

pub use cause::signal_name;
pub use memory::{code_at, pointers};

use crate::hijack::Failed;
use crate::program::program_of;
use base::finding::FATAL_SIGNAL;
use base::{Address, Confidence, CrashReport, Finding, ProcessNumber, Step, ThreadNumber};
use iced_x86::{Decoder, DecoderOptions};
use instruction::{NAMES, Stopped};
use memory::Kept;
use serde::Serialize;
use stack::Call;
use std::collections::BTreeMap;
use symbols::unwind::StackEnd;
use symbols::{Memory, Printing, Program, Registers, Scene, Stack};

/// Bytes of a function of which instructions are told apart.
const LONGEST_FUNCTION: usize = 256 << 10;
/// Frames looked at.
const MOST_FRAMES: usize = 10_000;
/// Local variables shown.
const MOST_LOCALS: usize = 12;
const LOCAL: Printing = Printing { depth: 2, elements: 8, text: 48, total: 90 };

/// A crash, explained.
#[derive(Serialize)]
pub struct Crash {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    crash: Details,
}

/// The numbers of a process and a thread that are the same in every run, where somebody knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The process.
    pub process: Option<ProcessNumber>,
    /// The thread.
    pub thread: Option<ThreadNumber>,
}

#[derive(Serialize)]
struct Details {
    signal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadNumber>,
    /// As the kernel numbers them.
    kernel_process: i32,
    kernel_thread: i32,
    thread_name: String,
    program: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<Stopped>,
    registers: BTreeMap<String, Address>,
    stack: Vec<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// Whether somebody sent the signal; the processor did not raise it.
    #[serde(skip)]
    sent: bool,
    #[serde(skip)]
    general: [u64; 16],
    #[serde(skip)]
    pc: u64,
    #[serde(skip)]
    flags: u64,
}

impl Crash {
    /// Explains what the runner reported.
    pub fn of(report: &CrashReport) -> Self {
        Self::of_known(report, Identity::default())
    }

    /// The same where it is known which process and thread that was.
    pub fn of_known(report: &CrashReport, identity: Identity) -> Self {
        let program = program_of(&report.modules);
        let kept = Kept(&report.memory);
        let pc = stopped_at(report);
        let registers = Registers::from_encoding_order(&report.general, pc);
        let stack = program.unwind_at_most(&registers, &kept, MOST_FRAMES);
        let thread_pointer = Some(Address(report.fs));
        let scene = Scene { program: &program, memory: &kept, stack: &stack, thread_pointer };
        let calls = stack::calls(&scene);
        let code = memory::code_at(report, pc);
        let stopped = Stopped::decode(&code, pc, &report.general, report.fs);
        let finding = finding_of((report, identity), &scene, &calls, stopped.as_ref());
        let advice = advice(&program, &calls);
        let named = NAMES.iter().map(|name| (*name).to_owned()).zip(report.general);
        let other = [("rip".to_owned(), report.pc), ("rflags".to_owned(), report.flags)];
        let details = Details {
            signal: signal_name(report.signal),
            process: identity.process,
            thread: identity.thread,
            kernel_process: report.process,
            kernel_thread: report.thread,
            thread_name: report.name.clone(),
            program: report.program.clone(),
            instruction: stopped,
            registers: named.chain(other).map(|(name, value)| (name, Address(value))).collect(),
            stack: calls,
            advice,
            sent: report.code <= 0,
            general: report.general,
            pc: report.pc,
            flags: report.flags,
        };
        Self { finding, crash: details }
    }

    /// The active calls up to the innermost of the program's own: function, and the address that
    /// it is at, or would have come back to.
    pub fn calls_to_own(&self) -> Vec<(Option<String>, Address)> {
        let own = blamed(&self.crash.stack).unwrap_or(0);
        let calls = self.crash.stack.iter().take(own + 1);
        calls.map(|call| (call.function.clone(), call.address)).collect()
    }

    /// The registers that the instruction read.
    pub fn used_registers(&self) -> Vec<u64> {
        let read = self.crash.instruction.iter().flat_map(|stopped| &stopped.registers);
        read.map(|(_, value)| *value).collect()
    }

    /// Whether registers tell anything: where the signal was sent they hold the kernel's numbers of the process
    /// and thread, which are others each time.
    pub fn registers_matter(&self) -> bool {
        !self.crash.sent
    }

    /// The registers as they were, in the order in which debuggers show them.
    pub fn registers(&self) -> Vec<(&'static str, u64)> {
        let named = NAMES.iter().copied().zip(self.crash.general);
        named.chain([("rip", self.crash.pc), ("rflags", self.crash.flags)]).collect()
    }

    /// How to get more than this report has, if that is possible.
    pub fn advice(&self) -> Option<&str> {
        self.crash.advice.as_deref()
    }
}

/// Whether a program ended because its stack was full.
pub fn stack_is_full(report: &CrashReport) -> bool {
    report.code > 0 && cause::stack_overflow(report).is_some()
}

/// How a jump, or a return, ended a program, if that was it.
pub fn jump_that_failed(report: &CrashReport) -> Option<Failed> {
    const STACK_POINTER: usize = 4;
    if report.code <= 0 {
        return None;
    }
    if cause::is_fetch(report) {
        return (report.pc != 0).then_some(Failed::At(report.pc));
    }
    let code = memory::code_at(report, report.pc);
    let stopped = Stopped::decode(&code, report.pc, &report.general, report.fs)?;
    if stopped.returns() {
        let slot = report.general[STACK_POINTER];
        let mut bytes = [0; 8];
        let read = Kept(&report.memory).read(Address(slot), &mut bytes);
        return Some(match read {
            true => Failed::Return { slot, target: u64::from_le_bytes(bytes) },
            // It stands where the frame pointer has led.
            false => Failed::FramePointer,
        });
    }
    if let Some(target) = stopped.branches_to() {
        return Some(Failed::At(target));
    }
    let by_frame = stopped.registers.iter().any(|(name, _)| name == "rbp");
    by_frame.then_some(Failed::FramePointer)
}

/// The instruction that the signal is about. The processor reports a breakpoint behind it.
fn stopped_at(report: &CrashReport) -> u64 {
    const BREAKPOINT_TRAP: u64 = 3;
    let before = report.pc.wrapping_sub(1);
    let breakpoint = report.trap == BREAKPOINT_TRAP
        && signal_name(report.signal) == "SIGTRAP"
        && memory::code_at(report, before).first() == Some(&0xcc);
    if breakpoint { before } else { report.pc }
}

fn finding_of(
    (report, identity): (&CrashReport, Identity),
    scene: &Scene<'_>,
    calls: &[Call],
    stopped: Option<&Stopped>,
) -> Finding {
    let inside = inside_instruction(scene.program, stopped_at(report));
    // A line that control came to by mistake is innocent.
    let led_astray = usize::from(inside.is_some() && calls.len() > 1);
    let own = blamed(&calls[led_astray..]).map(|own| own + led_astray);
    let foreign = &calls[..own.unwrap_or(calls.len())];
    let names: Vec<&str> = foreign.iter().filter_map(|call| call.function.as_deref()).collect();
    let words = cause::cause(report, stopped, &names);
    let words = match inside {
        Some(function) => format!(
            "it came into the middle of an instruction of {function}, by a damaged return address or \
             function pointer; there {words}"
        ),
        None => words,
    };
    let own = own.unwrap_or(0);
    let program = stack::file_name(&report.program);
    let mut evidence = whereabouts(report, identity);
    // A signal that was sent has nothing to do with the instruction at which it arrived.
    if report.code > 0 {
        evidence.push(instruction_step(report, stopped));
    }
    if let Some(step) = locals_step(scene, calls, own) {
        evidence.push(step);
    }
    evidence.extend(stack::steps(calls, scene.stack.end, is_cut(report, scene.stack)));
    Finding {
        kind: FATAL_SIGNAL.into(),
        title: format!("{program} was ended by {}: {words}", signal_name(report.signal)),
        confidence: Confidence::Certain,
        place: calls.get(own).map(Call::place),
        when: None,
        evidence,
    }
}

/// The function inside one of whose instructions an address is, where none of them begins.
fn inside_instruction(program: &Program, pc: u64) -> Option<String> {
    let code = program.symbolise(Address(pc));
    // Code without lines may be written by hand, with data in it.
    let (function, offset) = code.symbol.filter(|_| !code.frames.is_empty())?;
    let length = usize::try_from(offset).ok().filter(|length| *length <= LONGEST_FUNCTION)?;
    let mut code = vec![0; length + 15];
    let start = pc - offset;
    let whole = program.code_bytes(Address(start), &mut code);
    if !whole {
        code.truncate(length);
        program.code_bytes(Address(start), &mut code).then_some(())?;
    }
    let mut decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
    while decoder.ip() < pc && decoder.can_decode() {
        if decoder.decode().is_invalid() {
            // Data among the code: nothing is known of what follows.
            return None;
        }
    }
    (decoder.ip() > pc).then_some(function)
}

/// The innermost call of the program's own code: by its source, else by its file.
fn blamed(calls: &[Call]) -> Option<usize> {
    let in_program =
        |call: &Call| call.module.as_deref().is_some_and(|file| !base::is_system_file(file));
    calls.iter().position(Call::is_own).or_else(|| calls.iter().position(in_program))
}

/// Which process and thread it was, where that is a question. The kernel's numbers are others each time.
fn whereabouts(report: &CrashReport, identity: Identity) -> Vec<Step> {
    let mut steps = Vec::new();
    if i64::from(report.parent) != i64::from(std::process::id()) {
        steps.push(Step::new(match identity.process {
            Some(number) => format!("in process {number}, which another one started"),
            None => "in a process that another one started".into(),
        }));
    }
    if report.thread != report.process {
        steps.push(Step::new(match identity.thread {
            Some(number) => format!("in thread {number} ({})", report.name),
            None => format!("in a thread that is not the first ({})", report.name),
        }));
    }
    steps
}

fn instruction_step(report: &CrashReport, stopped: Option<&Stopped>) -> Step {
    let Some(stopped) = stopped else {
        return Step::new(format!("there is no instruction at {:#x}", report.pc));
    };
    let mut step = Step::new(format!("the instruction is `{}`", stopped.text));
    for (name, value) in &stopped.registers {
        step = step.with(name, format!("{value:#x}"));
    }
    step
}

/// The variables of the function that the crash is put down to.
fn locals_step(scene: &Scene<'_>, calls: &[Call], own: usize) -> Option<Step> {
    let call = calls.get(own)?;
    let level = scene.each_call().nth(own).map(|call| call.level).unwrap_or_default();
    let mut step = Step::new(format!("the variables of {}", call.function.as_ref()?));
    let of_compiler = |name: &str| name.starts_with("__");
    let locals = scene.locals(level).into_iter();
    for local in locals.filter(|local| !local.hidden && !of_compiler(&local.name)) {
        let value = scene.value_of(&local);
        if value.held.why_lost().is_none() && scene.bytes(&value).is_ok() {
            step = step.with(&local.name, scene.print(&value, &LOCAL));
        }
        if step.values.len() == MOST_LOCALS {
            break;
        }
    }
    (!step.values.is_empty()).then_some(step)
}

/// Whether the stack goes on beyond the memory that was kept.
fn is_cut(report: &CrashReport, stack: &Stack) -> bool {
    let Some(last) = stack.frames.last() else { return false };
    let (Some(kept), Some(region)) = (report.memory.first(), &report.at_stack) else {
        return false;
    };
    let end = kept.start.saturating_add(kept.bytes.len() as u64);
    stack.end == StackEnd::Lost
        && end < region.end
        && last.registers.rsp().0.saturating_add(4096) > end
}

/// How to get more than this report has.
fn advice(program: &Program, calls: &[Call]) -> Option<String> {
    let first = calls.first()?;
    let inner = calls.iter().take_while(|call| !call.is_own());
    if calls.iter().any(Call::is_own) {
        return None;
    }
    let mut modules = inner.filter_map(|call| call.module.as_deref());
    let module =
        modules.find(|module| !base::is_system_file(module)).or(first.module.as_deref())?;
    let found = program.modules().iter().find(|m| m.loaded().path.as_os_str() == module)?;
    if found.module()?.has_debug_info() {
        return None;
    }
    let stripped = !found.module()?.image().has(".symtab");
    let lacks = if stripped { "neither symbols nor" } else { "no" };
    let name = stack::file_name(module);
    let remedy = if base::is_system_file(module) {
        "install the -dbgsym package of its package"
    } else {
        "build it with -g, and do not strip it,"
    };
    Some(format!("{name} has {lacks} debug information: {remedy} to see lines and variables"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ModuleMap;
    use base::crash::{Chunk, Region};
    use proptest::prelude::*;

    /// A read of an address where nothing is mapped, by nobody knows what.
    pub fn report() -> CrashReport {
        CrashReport {
            process: 1,
            parent: 0,
            thread: 1,
            name: "thread".into(),
            program: "/bin/program".into(),
            signal: 11,
            code: 1,
            address: 0x1_2345_6789,
            sender: 0,
            trap: 14,
            error: 4,
            pc: 0x1000,
            flags: 0,
            general: [0; 16],
            fs: 0,
            modules: Vec::new(),
            at_address: None,
            at_stack: None,
            memory: Vec::new(),
        }
    }

    /// Any number, often one with which sums overflow.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), 0..0x4000u64, (u64::MAX - 0x4000)..=u64::MAX]
    }

    fn region() -> impl Strategy<Value = Region> {
        (number(), number(), any::<i32>()).prop_map(|(start, end, protection)| Region {
            start,
            end,
            protection,
            file: None,
        })
    }

    fn any_report() -> impl Strategy<Value = CrashReport> {
        let module = (number(), number(), number(), any::<bool>()).prop_map(|parts| {
            // A true ELF file at any place, or one that is not there.
            let own = std::env::current_exe().unwrap_or_default().display().to_string();
            let path = if parts.3 { own } else { "/no/such/file".into() };
            ModuleMap { start: parts.0, end: parts.1, offset: parts.2, path }
        });
        let chunk = (number(), proptest::collection::vec(any::<u8>(), 0..200))
            .prop_map(|(start, bytes)| Chunk { start, bytes });
        let what = (any::<i32>(), any::<i32>(), 0..20u64, any::<u64>());
        let signal = prop_oneof![any::<i32>(), prop::sample::select(vec![4, 5, 6, 7, 8, 11])];
        let places = (number(), number(), prop::array::uniform16(number()));
        let regions = (prop::option::of(region()), prop::option::of(region()));
        let lists =
            (proptest::collection::vec(module, 0..4), proptest::collection::vec(chunk, 0..6));
        (what, signal, places, regions, lists).prop_map(|(what, signal, places, regions, lists)| {
            CrashReport {
                signal,
                sender: what.0,
                code: what.1,
                trap: what.2,
                error: what.3,
                address: places.0,
                pc: places.1,
                general: places.2,
                at_address: regions.0,
                at_stack: regions.1,
                modules: lists.0,
                memory: lists.1,
                ..report()
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn whatever_a_guest_left_behind_can_be_explained(report in any_report()) {
            let crash = Crash::of(&report);
            prop_assert!(crash.finding.title.starts_with("program was ended by "));
            prop_assert!(serde_json::to_string(&crash).is_ok());
        }
    }
}
