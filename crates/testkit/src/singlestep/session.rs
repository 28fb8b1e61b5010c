//! The loop: look at the instruction that comes next, step, see what became of it.
//!
//! One bulk read a step fetches the bytes that the last instruction wrote, the code of the next
//! one (to notice that it changed) and the bytes that it will read.

use super::Start;
use super::accesses;
use super::decode::{Decoded, Shape, pops_flags, pushes_flags};
use super::frame;
use super::launch::launch;
use super::process::{Process, Registers};
use super::step::{AccessKind, Counts, Flow, Step, SystemCall};
use super::substitute::Substitute;
use anyhow::{Context, bail};
use iced_x86::{Code, ConditionCode, FlowControl, InstructionInfoFactory, Mnemonic};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use std::collections::HashMap;
use std::ffi::OsString;
use std::process::Stdio;
use std::rc::Rc;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

pub(super) const TRAP_FLAG: u64 = 0x100;
/// `si_code` of the stop at a signal handler's first instruction.
const ENTERED_HANDLER: i32 = nix::libc::SIGTRAP;
/// `si_code` of a breakpoint instruction.
const BREAKPOINT: i32 = 0x80;

/// A program being stepped.
pub struct Session {
    pub(super) process: Process,
    pub(super) regs: Registers,
    cache: HashMap<u64, Rc<Decoded>>,
    infos: InstructionInfoFactory,
    /// The step under way, and the one handed out.
    step: Step,
    /// Whether `step` has begun: a REP instruction has repeated before.
    begun: bool,
    pub(super) decoded: Option<Rc<Decoded>>,
    buffer: Vec<u8>,
    /// Registers before the step.
    pub(super) before: Registers,
    /// The signal to deliver with the next step, and the one delivered with the last.
    pub(super) inject: Option<Signal>,
    pub(super) injected: Option<Signal>,
    handler: Option<i32>,
    pub(super) substitute: Option<Substitute>,
    small_frames: bool,
    counts: Counts,
    ending: Option<Ending>,
}

/// What a stop means.
pub(super) enum Stop {
    /// The instruction (or one repetition) was executed.
    Stepped,
    /// A handler was entered; nothing was executed.
    Handler,
    /// A signal is about to be delivered.
    Signal(Signal),
    Ended(Ending),
}

impl Session {
    /// Starts `command` with its output going to `output`, and runs it to where reporting begins.
    ///
    /// # Errors
    /// When it cannot be started or traced, or ends before reporting begins.
    pub fn launch(command: &[OsString], start: &Start, output: Stdio) -> anyhow::Result<Self> {
        let process = Process { pid: launch(command, output)? };
        let regs = process.registers()?;
        let mut session = Self {
            process,
            regs,
            cache: HashMap::new(),
            infos: InstructionInfoFactory::new(),
            step: Step::default(),
            begun: false,
            decoded: None,
            buffer: Vec::new(),
            before: regs,
            inject: None,
            injected: None,
            handler: None,
            substitute: None,
            small_frames: false,
            counts: Counts::default(),
            ending: None,
        };
        match start {
            Start::AtOnce => session.settle()?,
            Start::AfterStop(runner) => {
                session.run_to_stop()?;
                while runner.contains(&session.regs.rip) {
                    session.step_silently()?;
                }
            }
        }
        Ok(session)
    }

    /// From now on handlers get the signal frames of a processor with x87, SSE and AVX alone.
    pub fn make_frames_small(&mut self) {
        self.small_frames = true;
    }

    /// What has been executed so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How the program ended, once it has.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Executes the next instruction; none when the program has ended.
    ///
    /// # Errors
    /// When the program cannot be traced any further.
    pub fn next_step(&mut self) -> anyhow::Result<Option<&Step>> {
        self.begun = false;
        while self.ending.is_none() {
            let first = self.begin();
            let stop = self.perform()?;
            let finished = match stop {
                Stop::Stepped => self.finish_iteration(first)?,
                Stop::Handler => {
                    self.begun = false;
                    if self.small_frames {
                        frame::shrink(&self.process, &mut self.regs)?;
                    }
                    false
                }
                Stop::Signal(signal) => self.interrupt(signal, first)?,
                Stop::Ended(ending) => self.end(ending, first),
            };
            if finished {
                self.counts.add(&self.step);
                return Ok(Some(&self.step));
            }
        }
        Ok(None)
    }

    /// Runs on unobserved until `pc` is the next instruction; false if the program ends before.
    ///
    /// # Errors
    /// When no breakpoint can be set there, or the program cannot be traced any further.
    pub fn run_to(&mut self, pc: u64) -> anyhow::Result<bool> {
        if self.regs.rip == pc {
            return Ok(true);
        }
        let (saved, _) = self.process.code(pc);
        self.process.poke(pc, &[0xcc])?;
        loop {
            ptrace::cont(self.process.pid, self.inject.take())?;
            match waitpid(self.process.pid, None)? {
                WaitStatus::Exited(_, code) => self.ending = Some(Ending::Exit(code)),
                WaitStatus::Signaled(_, signal, _) => {
                    self.ending = Some(Ending::Signal(signal as i32));
                }
                WaitStatus::Stopped(_, signal) => {
                    self.regs = self.process.registers()?;
                    if signal != Signal::SIGTRAP || self.regs.rip != pc + 1 {
                        self.inject = Some(signal);
                        continue;
                    }
                    self.process.poke(pc, &saved[..1])?;
                    self.regs.rip = pc;
                    ptrace::setregs(self.process.pid, self.regs)?;
                    return Ok(true);
                }
                other => bail!("the program stopped in a way that cannot be followed: {other:?}"),
            }
            return Ok(false);
        }
    }

    /// The program's memory as it is now; shorter if not all of it is mapped.
    #[must_use]
    pub fn memory(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let count = self.process.read(&[(address, length)], &mut bytes);
        bytes.truncate(count);
        bytes
    }

    /// Prepares the step for the instruction at the current pc; returns where in the step's
    /// accesses those of this repetition start.
    fn begin(&mut self) -> usize {
        let pc = self.regs.rip;
        if !self.begun {
            self.begun = true;
            self.step.pc = pc;
            self.step.completed = false;
            self.step.flow = Flow::Next;
            self.step.entered_handler_of = self.handler.take();
            self.step.accesses.clear();
            self.step.values.clear();
        }
        let first = self.step.accesses.len();
        let decoded = match self.cache.get(&pc).cloned() {
            Some(known) if self.look(&known, first) => known,
            _ => {
                let (bytes, count) = self.process.code(pc);
                let decoded = Rc::new(Decoded::new(pc, bytes, count, &mut self.infos));
                self.cache.insert(pc, decoded.clone());
                self.look(&decoded, first);
                decoded
            }
        };
        self.step.bytes = decoded.bytes;
        self.step.length = decoded.length;
        self.step.code = decoded.instruction.code();
        self.decoded = Some(decoded);
        first
    }

    /// Lists the accesses of `decoded` and reads what it will read; false if its bytes are no
    /// longer the ones in memory.
    fn look(&mut self, decoded: &Decoded, first: usize) -> bool {
        let step = &mut self.step;
        step.accesses.truncate(first);
        let kept = step.accesses.last().map_or(0, |last| (last.at + last.size) as usize);
        step.values.truncate(kept);
        accesses::list(&self.process, decoded, &self.regs, &mut step.accesses);
        let length = usize::from(decoded.length);
        let mut pieces = vec![(self.regs.rip, length)];
        let mut total = length;
        for access in &mut step.accesses[first..] {
            access.at = step.values.len() as u32;
            step.values.resize(step.values.len() + access.size as usize, 0);
            if access.kind == AccessKind::Read {
                pieces.push((access.address, access.size as usize));
                total += access.size as usize;
            }
        }
        self.buffer.clear();
        self.buffer.resize(total, 0);
        let count = self.process.read(&pieces, &mut self.buffer);
        if count < length || self.buffer[..length] != decoded.bytes[..length] {
            return false;
        }
        let mut from = length;
        for access in &step.accesses[first..] {
            if access.kind == AccessKind::Read {
                let size = access.size as usize;
                let bytes = &self.buffer[from..from + size];
                step.values[access.at as usize..access.at as usize + size].copy_from_slice(bytes);
                from += size;
            }
        }
        true
    }

    /// Steps once and says what happened.
    pub(super) fn advance(&mut self) -> anyhow::Result<Stop> {
        let injected = self.inject.take();
        self.injected = injected;
        self.before = self.regs;
        ptrace::step(self.process.pid, injected)?;
        let status = waitpid(self.process.pid, None)
            .context("waiting for the program (a real-time signal cannot be followed)")?;
        let stop = match status {
            WaitStatus::Exited(_, code) => return Ok(Stop::Ended(Ending::Exit(code))),
            WaitStatus::Signaled(_, signal, _) => {
                return Ok(Stop::Ended(Ending::Signal(signal as i32)));
            }
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let breakpoint = self.step.code == Code::Int3 || self.step.code == Code::Int1;
                let code = if injected.is_some() || breakpoint {
                    ptrace::getsiginfo(self.process.pid)?.si_code
                } else {
                    0
                };
                match code {
                    BREAKPOINT => Stop::Signal(Signal::SIGTRAP),
                    ENTERED_HANDLER => {
                        self.handler = injected.map(|signal| signal as i32);
                        Stop::Handler
                    }
                    _ => Stop::Stepped,
                }
            }
            WaitStatus::Stopped(_, signal) => Stop::Signal(signal),
            other => bail!("the program stopped in a way that cannot be followed: {other:?}"),
        };
        self.regs = self.process.registers()?;
        Ok(stop)
    }

    /// Ends the step, or goes on with the next repetition of a REP instruction (false).
    fn finish_iteration(&mut self, first: usize) -> anyhow::Result<bool> {
        let decoded = self.decoded.clone().context("a step has an instruction")?;
        self.hide_trap_flag(&decoded)?;
        self.read_written(first);
        let stays = self.regs.rip == self.step.pc;
        if stays && decoded.shape == Shape::Gather {
            self.keep_gathered(&decoded, first);
        }
        if stays && matches!(decoded.shape, Shape::Repeated | Shape::Gather) {
            return Ok(false);
        }
        self.complete(&decoded);
        Ok(true)
    }

    /// A gather about to fault traps first, with the elements before the fault done and switched
    /// off in its mask: keeps only their accesses.
    fn keep_gathered(&mut self, decoded: &Decoded, first: usize) {
        let mut left = Vec::new();
        accesses::list(&self.process, decoded, &self.regs, &mut left);
        let done = (self.step.accesses.len() - first).saturating_sub(left.len());
        self.step.accesses.truncate(first + done);
    }

    /// The values that the last repetition wrote.
    fn read_written(&mut self, first: usize) {
        let step = &mut self.step;
        for access in &step.accesses[first..] {
            if access.kind == AccessKind::Write {
                let at = access.at as usize;
                let bytes = &mut step.values[at..at + access.size as usize];
                self.process.read(&[(access.address, bytes.len())], bytes);
            }
        }
    }

    fn complete(&mut self, decoded: &Decoded) {
        self.step.completed = true;
        let next = self.step.pc.wrapping_add(u64::from(decoded.length));
        let to = self.regs.rip;
        let direct = decoded.instruction.near_branch_target();
        self.step.flow = match decoded.control {
            FlowControl::ConditionalBranch => {
                // A branch to the next instruction looks the same either way.
                let taken = to != next || direct == next && condition(decoded, &self.before);
                Flow::Branch { taken, target: direct }
            }
            FlowControl::UnconditionalBranch => Flow::Jump { target: to, indirect: false },
            FlowControl::IndirectBranch => Flow::Jump { target: to, indirect: true },
            FlowControl::Call if self.step.code == Code::Syscall => {
                Flow::System(system_call(&self.before, Some(self.regs.rax.cast_signed())))
            }
            FlowControl::Call => Flow::Call { target: to, indirect: false },
            FlowControl::IndirectCall => Flow::Call { target: to, indirect: true },
            FlowControl::Return => Flow::Return { target: to },
            _ => Flow::Next,
        };
    }

    /// A signal stop: either the instruction raised it, or it came from elsewhere.
    fn interrupt(&mut self, signal: Signal, first: usize) -> anyhow::Result<bool> {
        let stops = [Signal::SIGSTOP, Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];
        self.inject = (!stops.contains(&signal)).then_some(signal);
        if self.regs.rip != self.step.pc {
            return self.finish_iteration(first);
        }
        self.step.accesses.truncate(first);
        let raised = ptrace::getsiginfo(self.process.pid)?.si_code > 0;
        let nothing_to_tell = !raised && first == 0;
        if nothing_to_tell {
            self.handler = self.step.entered_handler_of;
            self.begun = false;
        }
        Ok(!nothing_to_tell)
    }

    /// The program is gone; a system call that did not come back is its last step.
    fn end(&mut self, ending: Ending, first: usize) -> bool {
        self.ending = Some(ending);
        self.step.accesses.truncate(first);
        if self.step.code != Code::Syscall || self.injected.is_some() {
            return first > 0;
        }
        self.step.completed = true;
        self.step.flow = Flow::System(system_call(&self.before, None));
        true
    }

    /// Takes the trap flag, which only stepping has set, out of what PUSHF and SYSCALL stored, and
    /// keeps the kernel from taking it for the program's own after POPF.
    fn hide_trap_flag(&mut self, decoded: &Decoded) -> anyhow::Result<()> {
        let code = decoded.instruction.code();
        if pushes_flags(code) {
            let mut flags = [0; 2];
            self.process.read(&[(self.regs.rsp, 2)], &mut flags);
            flags[1] &= !1;
            self.process.write(self.regs.rsp, &flags)?;
        }
        if code == Code::Syscall && self.regs.r11 & TRAP_FLAG != 0 {
            self.regs.r11 &= !TRAP_FLAG;
            ptrace::setregs(self.process.pid, self.regs)?;
        }
        if pops_flags(code) {
            self.renew_stepping()?;
        }
        Ok(())
    }

    /// Having stepped an instruction that may set the trap flag, the kernel believes from then on
    /// that the program did, and leaves it set in signal frames and when stepping ends. It forgets
    /// when the process is resumed without stepping; a stop signal sent before sees to it that no
    /// instruction is executed meanwhile.
    fn renew_stepping(&mut self) -> anyhow::Result<()> {
        self.regs.eflags &= !TRAP_FLAG;
        ptrace::setregs(self.process.pid, self.regs)?;
        nix::sys::signal::kill(self.process.pid, Signal::SIGSTOP)?;
        ptrace::cont(self.process.pid, None)?;
        match waitpid(self.process.pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => {}
            // Another signal came first; ours is dropped when it comes.
            WaitStatus::Stopped(_, signal) => self.inject = Some(signal),
            other => bail!("the program stopped in a way that cannot be followed: {other:?}"),
        }
        Ok(())
    }

    /// Leaves the exec that started the program: the first step out of a system call executes no
    /// instruction.
    fn settle(&mut self) -> anyhow::Result<()> {
        let entry = self.regs.rip;
        self.step_silently()?;
        anyhow::ensure!(self.regs.rip == entry, "the first instruction was stepped over");
        Ok(())
    }

    fn run_to_stop(&mut self) -> anyhow::Result<()> {
        let mut pass = None;
        loop {
            ptrace::cont(self.process.pid, pass)?;
            match waitpid(self.process.pid, None)? {
                WaitStatus::Stopped(_, Signal::SIGSTOP) => break,
                WaitStatus::Stopped(_, Signal::SIGTRAP) => pass = None,
                WaitStatus::Stopped(_, signal) => pass = Some(signal),
                other => bail!("the program ended before it stopped itself: {other:?}"),
            }
        }
        self.regs = self.process.registers()?;
        Ok(())
    }

    fn step_silently(&mut self) -> anyhow::Result<()> {
        match self.advance()? {
            Stop::Ended(ending) => bail!("the program ended before it began: {ending:?}"),
            Stop::Signal(signal) => self.inject = Some(signal),
            Stop::Stepped | Stop::Handler => {}
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.ending.is_none() {
            // The program may be gone already; then there is nothing to end.
            let _ = nix::sys::signal::kill(self.process.pid, Signal::SIGKILL);
            let _ = waitpid(self.process.pid, None);
        }
    }
}

fn system_call(before: &Registers, result: Option<i64>) -> SystemCall {
    let arguments = [before.rdi, before.rsi, before.rdx, before.r10, before.r8, before.r9];
    SystemCall { number: before.rax, arguments, result }
}

/// Whether a conditional branch is taken with these registers.
fn condition(decoded: &Decoded, regs: &Registers) -> bool {
    let bit = |number: u32| regs.eflags >> number & 1 == 1;
    let (carry, parity, zero, sign, overflow) = (bit(0), bit(2), bit(6), bit(7), bit(11));
    let counter = if matches!(decoded.instruction.mnemonic(), Mnemonic::Jecxz) {
        regs.rcx & 0xffff_ffff
    } else {
        regs.rcx
    };
    match decoded.instruction.condition_code() {
        ConditionCode::o => overflow,
        ConditionCode::no => !overflow,
        ConditionCode::b => carry,
        ConditionCode::ae => !carry,
        ConditionCode::e => zero,
        ConditionCode::ne => !zero,
        ConditionCode::be => carry || zero,
        ConditionCode::a => !carry && !zero,
        ConditionCode::s => sign,
        ConditionCode::ns => !sign,
        ConditionCode::p => parity,
        ConditionCode::np => !parity,
        ConditionCode::l => sign != overflow,
        ConditionCode::ge => sign == overflow,
        ConditionCode::le => zero || sign != overflow,
        ConditionCode::g => !zero && sign == overflow,
        ConditionCode::None => counter == 0,
    }
}
