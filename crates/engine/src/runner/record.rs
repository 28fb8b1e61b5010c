//! **Recording**: writes down what a replay cannot work out by itself, in the order in which the
//! baton lets it happen.
//!
//! Everything that is not the program's own doing comes in through four doors: system calls,
//! signals, a few instructions, and which thread runs. Each has a function here that the engine
//! calls when the door has been passed. Nothing else of the engine knows about recording, except
//! where it asks [`Engine::is_recorded`] because the kernel must not write behind our back.
//!
//! * [`log`]: where the bytes go; [`files`]: contents of mapped files;
//! * [`image`]: the process as it is when its log begins;
//! * [`digest`]: what replay compares;
//! * [`output`]: what whoever started the tool sees;
//! * [`region`]: which part of the run;
//! * [`schedule`]: who runs next, and how long;
//! * [`tree`]: memory that the guest's processes share; [`made`]: whether it is all theirs, and
//!   [`outsiders`] and [`handed`]: whether it stays so;
//! * [`written`]: files that are mapped and written, [`changed`]: by others;
//! * [`bounce`]: bounce buffers of calls that wait; [`waits`]: those whose time is over before it is;
//! * [`decide`]: what is answered otherwise, or refused.

pub mod bounce;
mod changed;
mod decide;
pub mod digest;
pub mod files;
mod handed;
pub mod image;
pub mod log;
mod made;
mod output;
mod outsiders;
pub mod region;
pub mod schedule;
pub mod tree;
pub mod waits;
mod written;

pub use decide::{decide, stays_here};
pub use output::identity;

use super::address_map::AddressMap;
use super::cpu::{Cpu, NOT_STARTED, Registers};
use super::engine::Engine;
use super::guest::Checked;
use super::memory::Memory;
use super::signal::SignalInfo;
use super::signal::frame::GuestMemory;
use super::thread::Thread;
use super::{baton, clock, report};
use crate::config::{Config, Recording};
use crate::host::REFUSED;
use crate::report::{LogOrigin, Message};
use crate::sys;
use log::Log;
use recording::log::{Call, Ending, Entry, Position, SignalData, write_head};
use schedule::{Event, Scheduler};
use syscalls::{Before, Known, Peek, Range};

/// The recorder of this process.
pub struct Recorder {
    log: Log,
    /// The thread that the last entry is about.
    running: i32,
    /// Who runs, and how long.
    pub scheduler: Scheduler,
    outputs: output::Outputs,
    /// What it has to do with the other processes of the recording.
    pub tree: tree::Tree,
    written: written::Files,
    views: changed::Views,
    /// Who else has memory that the guest has made.
    pub outsiders: outsiders::Outsiders,
    head: Vec<u8>,
    ranges: Vec<Range>,
    /// Instructions that the running thread executes one by one before it stops.
    steps: u64,
    /// When the log began.
    began: u64,
    /// Whether the running thread lets others run.
    yields: bool,
    /// Places where the schedule decides, and whether threads are held there.
    switch_points: AddressMap<bool>,
    /// How far the guest's clocks have been put forward.
    pub ahead: waits::Ahead,
}

/// What is noted before a system call.
pub struct Noted {
    check: u32,
    before: Before,
    asked: Option<u64>,
}

impl Peek for Memory {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let length = out.len() as u64;
        if !self.is_readable(address, length) {
            return false;
        }
        if self.has_file(address..address + length) {
            // Which may have become shorter: then there is nothing.
            return Checked.read(address, out);
        }
        // SAFETY: the guest has that memory and may read it; only we unmap it.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, out.as_mut_ptr(), out.len());
        }
        true
    }
}

/// Whether the schedule of a recording decides at locked instructions.
pub fn minds_events(config: &Config) -> bool {
    config.recording.as_ref().is_some_and(|how| how.schedule.minds_events())
}

impl Recorder {
    /// Starts the log of a process that has just been loaded.
    pub fn start(cpu: &Cpu, how: &Recording, process: i32) -> Box<Self> {
        let origin = if how.executed { LogOrigin::Exec } else { LogOrigin::Start };
        Box::new(Self {
            log: open(process, origin),
            running: 0,
            scheduler: Scheduler::new(how.schedule, how.cut),
            tree: tree::Tree::new(how.shared),
            written: written::Files::default(),
            views: changed::Views::default(),
            outsiders: outsiders::Outsiders::default(),
            outputs: output::Outputs::new(how.outputs),
            head: Vec::new(),
            ranges: Vec::new(),
            steps: 0,
            began: clock::now(cpu),
            yields: false,
            switch_points: how.switch_points.iter().map(|it| (it.pc, it.holds)).collect(),
            ahead: waits::Ahead::default(),
        })
    }

    fn put_call(&mut self, cpu: &Cpu, call: Call) {
        self.put(&Entry::Call(Call { time: clock::now(cpu), ..call }), 0);
    }

    fn put(&mut self, entry: &Entry, payload: u32) {
        self.head.clear();
        write_head(entry, payload, &mut self.head);
        self.log.append(&self.head);
    }

    fn put_memory(&mut self, address: u64, length: u64) {
        // SAFETY: whoever asks has seen that the guest has this memory; the baton is ours.
        self.log
            .append(unsafe { std::slice::from_raw_parts(address as *const u8, length as usize) });
    }

    /// A thread has the baton.
    pub fn switched(&mut self, cpu: &Cpu, thread: i32) {
        if self.running != thread {
            self.running = thread;
            self.put(&Entry::Switch { thread, time: clock::now(cpu) }, 0);
        }
        if self.log.is_refused() {
            report::send(&Message::Note("the recording ends here".into()));
            self.log.finish();
            sys::exit_group(2)
        }
    }

    /// The running thread has had its ticks. Whether it stops here; else a few instructions later.
    pub fn slice_ended(&mut self, cpu: &mut Cpu, thread: i32, left: u64) -> bool {
        let now = clock::now(cpu);
        self.scheduler.slice_ended(thread, now);
        clock::arm(cpu, self.scheduler.slice(now).min(left));
        self.steps = self.scheduler.steps();
        self.steps == 0
    }

    fn call(&mut self, cpu: &Cpu, memory: &Memory, mut call: Call) {
        call.writes.clear();
        let mut payload = 0;
        for range in &self.ranges {
            if memory.is_readable(range.address, range.length) {
                call.writes.push((range.address, range.length));
                payload += range.length;
            }
        }
        let writes = std::mem::take(&mut call.writes);
        let time = clock::now(cpu);
        let entry = Entry::Call(Call { writes: writes.clone(), time, ..call });
        self.put(&entry, payload as u32);
        for (address, length) in writes {
            self.put_memory(address, length);
        }
    }
}

fn open(process: i32, origin: LogOrigin) -> Log {
    files::note_process(process, true);
    Log::open(process, origin).unwrap_or_else(|error| {
        report::refuse(&format!("no buffers for the log: error {error}"), 0)
    })
}

/// Where the running thread is.
pub fn position(engine: &Engine) -> Position {
    let registers = &engine.cpu.registers;
    let check = digest::state(registers, &engine.process.memory);
    Position { time: clock::now(&engine.cpu), pc: registers.pc, check }
}

/// Before a system call: what must be known of it later.
pub fn before_call(engine: &Engine, number: u64, arguments: [u64; 6]) -> Option<Noted> {
    engine.config.recording.as_ref()?;
    // A region that begins while the call is under way knows nothing of what was before it.
    let check = match engine.log.recorder {
        Some(_) => digest::call(&engine.cpu.registers, number, arguments, &engine.process.memory),
        None => 0,
    };
    if made::opens(number) {
        outsiders::opens();
    }
    let before = syscalls::before(number, arguments, &engine.process.memory);
    Some(Noted { check, before, asked: made::asked(number, arguments) })
}

/// A system call has returned to the thread that made it.
pub fn called(engine: &mut Engine, noted: Noted, number: u64, arguments: [u64; 6], answer: i64) {
    made::called(noted.asked, number, answer);
    if made::opens(number) {
        outsiders::opened((answer >= 0).then(|| made::name(answer as u64)).flatten());
    }
    let Engine { log, process, cpu, .. } = engine;
    let (Some(recorder), memory) = (&mut log.recorder, &process.memory) else { return };
    recorder.ranges.clear();
    let output = recorder.outputs.end(answer);
    let check = noted.check;
    if answer == NOT_STARTED {
        recorder.call(cpu, memory, Call { number, answer, check, ..Call::default() });
        return;
    }
    let known =
        syscalls::written(number, arguments, answer, &noted.before, memory, &mut recorder.ranges);
    if known != Known::Yes {
        let why = syscalls::reason(number, arguments);
        recorder.refuse(&format!("the guest made {}: {why}", describe(number, arguments)));
    }
    let seen = recorder.tree.called(memory, number, arguments, answer);
    written::called(recorder, memory, number, arguments, answer);
    recorder.ranges.extend(seen.into_iter().map(|address| Range { address, length: tree::PAGE }));
    recorder.ranges.extend(numbers_written(number, arguments, answer));
    recorder.call(cpu, memory, Call { number, answer, check, output, ..Call::default() });
    if number as i64 == libc::SYS_mmap && answer > 0 {
        files::mapped(recorder, arguments);
    }
    if number as i64 == libc::SYS_shmat && answer > 0 {
        attached(recorder, memory, answer as u64);
    }
}

/// A segment of memory was attached that others may have filled.
fn attached(recorder: &mut Recorder, memory: &Memory, start: u64) {
    let Some((range, mapping)) = memory.find(start) else { return };
    let (length, protection) = (range.end - range.start, mapping.protection);
    let parts = tree::resident(range).into_iter().map(|part| (part.start, part.end - part.start));
    let writes: Vec<(u64, u64)> = parts.collect();
    let payload: u64 = writes.iter().map(|(_, length)| length).sum();
    let entry = Entry::Attached { length, protection, writes: writes.clone() };
    recorder.put(&entry, payload as u32);
    for (start, length) in writes {
        recorder.put_memory(start, length);
    }
}

/// Where the kernel, or the engine in its place, tells parent and child the child's number.
fn numbers_written(number: u64, arguments: [u64; 6], answer: i64) -> Option<Range> {
    if number as i64 != libc::SYS_clone || answer < 0 {
        return None;
    }
    let (flag, address) = match answer {
        0 => (libc::CLONE_CHILD_SETTID, arguments[3]),
        _ => (libc::CLONE_PARENT_SETTID, arguments[2]),
    };
    (arguments[0] & flag as u64 != 0).then_some(Range { address, length: 4 })
}

/// A system call, with its request where one call is many.
fn describe(number: u64, arguments: [u64; 6]) -> String {
    let Some(name) = syscalls::name(number) else {
        return format!("system call {number}");
    };
    let request = match number as i64 {
        libc::SYS_ioctl | libc::SYS_fcntl | libc::SYS_shmctl => arguments[1],
        libc::SYS_prctl | libc::SYS_ptrace | libc::SYS_keyctl | libc::SYS_bpf => arguments[0],
        _ => return format!("the system call {name}"),
    };
    format!("the system call {name} with request {:#x}", request as u32)
}

/// A call that has no return: the end of a thread, or of a process that is not this one.
pub fn leaves(engine: &mut Engine, noted: Option<Noted>, number: u64) {
    if let (Some(recorder), Some(noted)) = (&mut engine.log.recorder, noted) {
        let call = Call { number, check: noted.check, ..Call::default() };
        recorder.put_call(&engine.cpu, call);
    }
}

/// A process that shares our memory is ended by a signal.
pub fn leaves_by_signal(engine: &mut Engine) {
    let check = digest::state(&engine.cpu.registers, &engine.process.memory);
    if let Some(recorder) = &mut engine.log.recorder {
        let call = Call { number: libc::SYS_exit_group as u64, check, ..Call::default() };
        recorder.put_call(&engine.cpu, call);
    }
}

/// A signal comes to the running thread, which has a handler for it.
pub fn signal(engine: &mut Engine, info: &SignalInfo) {
    if engine.log.recorder.is_none() {
        return;
    }
    let at = position(engine);
    let used = info.raw.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let info = SignalData { raw: info.raw[..used].to_vec(), trap: info.trap, cr2: info.cr2 };
    if let Some(recorder) = &mut engine.log.recorder {
        recorder.put(&Entry::Signal { at, info }, 0);
    }
}

/// The running thread stops for others.
pub fn stopped(engine: &mut Engine) {
    if engine.log.recorder.is_none() {
        return;
    }
    let at = position(engine);
    if let Some(recorder) = &mut engine.log.recorder {
        recorder.put(&Entry::Stop(at), 0);
    }
}

/// The running thread has done something that others may have to do with: it may have to stop.
pub fn event(engine: &mut Engine, thread: &Thread) {
    happened(engine, thread, Event::Passed);
}

fn happened(engine: &mut Engine, thread: &Thread, event: Event) {
    let Some(recorder) = &mut engine.log.recorder else { return };
    if !recorder.scheduler.minds_events() || !baton::wanted() {
        return;
    }
    if recorder.scheduler.event(event, thread.tid(), &baton::waiting()) {
        recorder.steps = match event {
            Event::Passed => recorder.scheduler.steps(),
            Event::Target => 0,
        };
        match recorder.steps {
            0 => thread.shared.preempt(),
            _ => thread.shared.attend(),
        }
    }
}

/// The running thread is about to go on where it is: if that is a place that the host has named, it may
/// have to stop.
pub fn arrives(engine: &mut Engine, thread: &Thread) {
    let Some(recorder) = &engine.log.recorder else { return };
    if recorder.switch_points.is_empty() {
        return;
    }
    if let Some(holds) = recorder.switch_points.get(&engine.cpu.registers.pc) {
        let event = if *holds { Event::Target } else { Event::Passed };
        happened(engine, thread, event);
    }
}

/// Before the running thread goes on: whether one instruction is to be executed by itself, and
/// whether it is to stop now.
pub fn cut(engine: &mut Engine) -> (bool, bool) {
    let Some(recorder) = engine.log.recorder.as_mut().filter(|recorder| recorder.steps > 0) else {
        return (false, false);
    };
    recorder.steps -= 1;
    (recorder.steps > 0, recorder.steps == 0)
}

/// Whether other processes wait while this one runs.
pub fn is_member(engine: &Engine) -> bool {
    engine.log.recorder.as_ref().is_some_and(|recorder| recorder.tree.is_member())
}

/// Whether the running thread has asked to let others run.
pub fn takes_yield(engine: &mut Engine) -> bool {
    engine.log.recorder.as_mut().is_some_and(|recorder| std::mem::take(&mut recorder.yields))
}

/// Which of those who wait for the baton is to have it.
pub fn next(engine: &mut Engine) -> usize {
    let Some(recorder) = &mut engine.log.recorder else { return 0 };
    let waiting = baton::waiting();
    if waiting.is_empty() { 0 } else { recorder.scheduler.choose(&waiting) }
}

/// Whether the running thread goes on though others wait.
pub fn keeps_running(engine: &mut Engine, thread: i32) -> bool {
    let Some(recorder) = &mut engine.log.recorder else { return false };
    recorder.scheduler.keeps(thread, &baton::waiting())
}

/// An instruction got its answer from the engine.
pub fn answered(engine: &mut Engine, before: &Registers) {
    let Some(recorder) = &mut engine.log.recorder else { return };
    let after = &engine.cpu.registers;
    let registers = (0..16u8)
        .map(|number| (number, after.general[number as usize]))
        .filter(|(number, value)| before.general[*number as usize] != *value)
        .collect();
    recorder.put(&Entry::Answer { registers, flags: after.flags }, 0);
}

/// Number of the pc among the registers of an answer.
pub const PC: u8 = 16;

/// A tracer has taken a signal away that the guest had raised, and may have changed its registers.
pub fn taken_away(engine: &mut Engine, before: &Registers) {
    let Some(recorder) = &mut engine.log.recorder else { return };
    let after = &engine.cpu.registers;
    let general = (0..16u8).map(|number| (number, after.general[number as usize]));
    let changed = general.filter(|(number, value)| before.general[*number as usize] != *value);
    let registers = changed.chain([(PC, after.pc)]).collect();
    recorder.put(&Entry::Answer { registers, flags: after.flags }, 0);
}

/// The running thread is about to become another program. The log ends if this succeeds and the
/// process is not another one that shares our memory.
pub fn executes(engine: &mut Engine, thread: &Thread) {
    if !thread.foreign {
        tree::executes(engine);
    }
    if let Some(recorder) = &mut engine.log.recorder {
        recorder.put(&Entry::Exec, 0);
        if !thread.foreign {
            changed::ended(recorder);
            recorder.log.finish();
        }
    }
}

/// It has not: the log goes on.
pub fn not_executed(engine: &mut Engine, thread: &Thread) {
    let process = engine.process.numbers.host;
    if let Some(recorder) = &mut engine.log.recorder
        && !thread.foreign
    {
        recorder.log = open(process, LogOrigin::Continue);
        tree::not_executed(engine);
    }
}

/// The kernel is about to hold this process until its new child has ended or executed another program:
/// those that share memory go on meanwhile, the child among them.
pub fn waits_for_child(engine: &mut Engine) {
    tree::waits(engine);
}

/// It goes on.
pub fn has_waited(engine: &mut Engine) {
    tree::takes(engine);
}

/// In the child of a fork: a log of its own.
pub fn forked(engine: &mut Engine, thread: i32, parent: i32) {
    region::forked(engine);
    engine.threads.futexes.clear();
    let Engine { log, process, .. } = engine;
    let (recorder, memory, numbers) = (&mut log.recorder, &process.memory, &process.numbers);
    if let Some(recorder) = recorder {
        let origin = LogOrigin::Fork { parent, number: numbers.parents };
        recorder.log = open(numbers.host, origin);
        recorder.running = thread;
        recorder.put(&Entry::Forked { thread }, 0);
        tree::forked(recorder, memory);
    }
}

/// The process ends.
pub fn ended(engine: &mut Engine, ending: Ending) {
    let Engine { log, process, .. } = engine;
    let (recorder, memory, numbers) = (&mut log.recorder, &process.memory, &process.numbers);
    if let Some(recorder) = recorder {
        files::note_process(numbers.host, false);
        changed::ended(recorder);
        recorder.put(&Entry::End(ending), 0);
        if recorder.scheduler.minds_events() {
            report::send(&Message::Events(recorder.scheduler.events()));
        }
        recorder.log.finish();
        recorder.tree.leave(memory);
    }
}

/// What happens cannot be recorded faithfully: says so, and ends.
pub fn refuse(engine: &mut Engine, why: &str) -> ! {
    match &mut engine.log.recorder {
        Some(recorder) => recorder.refuse(why),
        None => say_refused(why),
    }
}

impl Recorder {
    /// The same. The host then ends all other processes, so the log comes first.
    fn refuse(&mut self, why: &str) -> ! {
        self.log.finish();
        say_refused(why)
    }
}

/// How long a process that has said so waits to be ended.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// The same, where the log need not be finished.
fn say_refused(why: &str) -> ! {
    report::send(&Message::Refused(why.to_owned()));
    // The host ends all processes at once: whoever waits for this one is not to go on before that.
    std::thread::sleep(PATIENCE);
    sys::exit_group(REFUSED)
}
