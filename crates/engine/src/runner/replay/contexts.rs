//! The guest's threads while they are replayed: contexts of one kernel thread.

use super::begin::{put, thread};
use super::diverge;
use crate::runner::context::Context;
use crate::runner::cpu;
use crate::runner::record::image::thread_data;
use crate::runner::stack::StackBlock;
use crate::runner::syscall::process::child_of;
use crate::runner::thread::Thread;
use recording::log::ThreadData;
use std::ptr::NonNull;
use std::sync::Arc;

/// A system call that a thread is in while others run.
#[derive(Clone, Copy, Debug)]
pub struct InCall {
    /// Which.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// Digest of the state before it.
    pub check: u32,
}

/// Why a thread does not run though it could.
#[derive(Clone, Copy, Debug)]
enum State {
    Runs,
    Stopped,
    InCall(InCall),
}

/// A thread, and why it does not run though it could.
struct Carried {
    number: i32,
    /// Made by [`Box::leak`]. The running one is borrowed through [`Context`] only.
    thread: NonNull<Thread>,
    gs: u64,
    state: State,
}

impl Carried {
    fn new(thread: Box<Thread>, gs: u64, state: State) -> Self {
        Self { number: thread.tid(), thread: NonNull::from(Box::leak(thread)), gs, state }
    }
}

/// All threads, one of which is in the processor.
pub struct Contexts {
    all: Vec<Carried>,
    /// Index of the one that runs. Past the end when it has ended.
    current: usize,
    /// Children that share memory and ran before the call that made them was over.
    early: Vec<i32>,
}

impl Contexts {
    /// With the threads of an image, none of which runs yet.
    pub fn new(threads: Vec<(Box<Thread>, u64, Option<InCall>)>) -> Self {
        let carried = |(thread, gs, call): (_, _, Option<InCall>)| {
            Carried::new(thread, gs, call.map_or(State::Stopped, State::InCall))
        };
        Self {
            all: threads.into_iter().map(carried).collect(),
            current: usize::MAX,
            early: Vec::new(),
        }
    }

    /// Whether a thread runs that has not ended.
    pub fn has_running(&self) -> bool {
        self.current < self.all.len()
    }

    /// Its number.
    pub fn number(&self) -> i32 {
        self.all.get(self.current).map_or(0, |carried| carried.number)
    }

    /// Whether the thread that runs cannot go on by itself.
    pub fn is_parked(&self) -> bool {
        self.all.get(self.current).is_none_or(|carried| !matches!(carried.state, State::Runs))
    }

    /// The running thread stops, for others to run.
    pub fn park(&mut self) {
        self.all[self.current].state = State::Stopped;
    }

    /// The running thread is in a system call.
    pub fn park_in(&mut self, call: InCall) {
        self.all[self.current].state = State::InCall(call);
    }

    /// The numbers of all threads, those behind the running one first.
    pub fn in_turn(&self) -> Vec<i32> {
        let numbers: Vec<i32> = self.all.iter().map(|carried| carried.number).collect();
        let behind = self.current.saturating_add(1).min(numbers.len());
        [&numbers[behind..], &numbers[..behind]].concat()
    }

    /// The call that the running thread is in, which is now over.
    pub fn unpark(&mut self) -> Option<InCall> {
        let carried = self.all.get_mut(self.current)?;
        match std::mem::replace(&mut carried.state, State::Runs) {
            State::InCall(call) => Some(call),
            _ => None,
        }
    }

    /// A new thread.
    pub fn add(&mut self, thread: Box<Thread>) {
        self.all.push(Carried::new(thread, cpu::gs_base(), State::Stopped));
    }

    /// The running thread has ended. It is not freed: the signal handler looks at it until another one
    /// runs, and so does whoever has borrowed it.
    pub fn end_current(&mut self) {
        self.all.swap_remove(self.current);
        self.current = usize::MAX;
    }

    /// What the running thread has of its own beside its registers is kept with it.
    fn keep_segment(&mut self) {
        if let Some(carried) = self.all.get_mut(self.current) {
            carried.gs = cpu::gs_base();
        }
    }

    /// Whether a thread lives.
    pub fn has(&self, number: i32) -> bool {
        self.find(number).is_some()
    }

    fn find(&self, number: i32) -> Option<usize> {
        self.all.iter().position(|carried| carried.number == number)
    }

    /// The thread that waits in a call which makes a process that shares its memory.
    fn parent(&self) -> Option<(usize, InCall)> {
        self.all.iter().enumerate().find_map(|(index, carried)| match carried.state {
            State::InCall(call) if shares_memory(&call) => Some((index, call)),
            _ => None,
        })
    }
}

/// Leaves the log: who waits in a call makes it again, and whoever there is can run.
pub fn leave_calls(context: &mut Context) {
    let engine = context.engine();
    let contexts = &mut engine.log.replayer.as_mut().expect("a replay is under way").contexts;
    let current = contexts.current;
    for (index, carried) in contexts.all.iter_mut().enumerate() {
        if matches!(carried.state, State::InCall(_)) {
            let registers = match index == current {
                true => &mut engine.cpu.registers,
                // SAFETY: it does not run, so nobody else refers to it.
                false => unsafe { &mut carried.thread.as_mut().registers },
            };
            // The instruction has two bytes.
            registers.pc -= 2;
            carried.state = State::Stopped;
        }
    }
    if let Some(carried) = contexts.all.get_mut(current) {
        carried.state = State::Runs;
    }
}

/// Gives a thread the answer to its system call.
pub fn answer(context: &mut Context, number: i32, answer: i64) {
    if number == context.replayer().contexts.number() {
        context.cpu().registers.general[0] = answer as u64;
    } else {
        with_thread(context, number, |thread| thread.registers.general[0] = answer as u64);
    }
}

/// Does something to the thread of a number, if there is one.
pub fn with_thread<T>(
    context: &mut Context,
    number: i32,
    act: impl FnOnce(&mut Thread) -> T,
) -> Option<T> {
    let contexts = &mut context.replayer().contexts;
    let index = contexts.find(number)?;
    if index == contexts.current {
        return Some(act(context.thread()));
    }
    // SAFETY: it does not run, so nobody else refers to it.
    Some(act(unsafe { contexts.all[index].thread.as_mut() }))
}

/// Takes the running thread's state back.
pub fn move_out(context: &mut Context) {
    if context.replayer().contexts.has_running() {
        let (engine, thread) = context.parts();
        thread.move_out(engine);
        engine.replayer().contexts.keep_segment();
    }
}

/// The running thread as it is; nothing of one that has ended.
pub fn running_data(context: &mut Context) -> ThreadData {
    if !context.replayer().contexts.has_running() {
        return ThreadData::default();
    }
    move_out(context);
    thread_data(context.thread())
}

/// All threads as they are.
pub fn data(context: &mut Context) -> Vec<ThreadData> {
    move_out(context);
    let data = |carried: &Carried| {
        // SAFETY: all of the context is borrowed here, so nobody else refers to any of them.
        let thread = unsafe { carried.thread.as_ref() };
        ThreadData {
            bases: [thread.registers.fs, carried.gs],
            call: match carried.state {
                State::InCall(call) => Some((call.number, call.arguments, call.check)),
                _ => None,
            },
            ..thread_data(thread)
        }
    };
    context.replayer().contexts.all.iter().map(data).collect()
}

/// All threads but the running one are gone, and it has another number.
pub fn only_current(context: &mut Context, number: i32) {
    let (engine, thread) = context.parts();
    let contexts = &mut engine.replayer().contexts;
    let current = contexts.all.swap_remove(contexts.current);
    for mut gone in contexts.all.drain(..) {
        // SAFETY: leaked when it was made, and it does not run.
        drop(unsafe { Box::from_raw(gone.thread.as_mut()) });
    }
    contexts.all.push(Carried { number, ..current });
    contexts.current = 0;
    thread.set_tid(number);
    thread.foreign = false;
    if let Some(actions) = thread.signals.actions.take() {
        engine.process.actions = *actions;
    }
}

/// Another thread runs.
pub fn switch(context: &mut Context, number: i32) {
    move_out(context);
    let found = context.replayer().contexts.find(number);
    let index = found.unwrap_or_else(|| child(context, number));
    let contexts = &mut context.replayer().contexts;
    contexts.current = index;
    let carried = &mut contexts.all[index];
    if let State::Stopped = carried.state {
        carried.state = State::Runs;
    }
    cpu::set_gs_base(carried.gs);
    let thread = carried.thread;
    // SAFETY: the list has it, so it has not been freed; this kernel thread carries it now.
    unsafe { context.switch(thread) };
    let (engine, thread) = context.parts();
    thread.block.set_owner(Arc::as_ptr(&thread.shared));
    thread.move_in(&mut engine.cpu);
    engine.record_thread(number);
}

/// A thread runs, from wherever it was later on; it may be new.
pub fn resume(context: &mut Context, data: &ThreadData, block: StackBlock) {
    move_out(context);
    let contexts = &mut context.replayer().contexts;
    contexts.current = usize::MAX;
    let gs = data.bases[1];
    match contexts.find(data.number) {
        Some(index) => {
            let carried = &mut contexts.all[index];
            // SAFETY: nobody runs, so nobody else refers to it.
            put(unsafe { carried.thread.as_mut() }, data);
            (carried.gs, carried.state) = (gs, State::Stopped);
        }
        None => contexts.all.push(Carried::new(thread(data, block), gs, State::Stopped)),
    }
    switch(context, data.number);
}

/// A child that shares its parent's memory, made by a call that has not returned yet.
fn child(context: &mut Context, number: i32) -> usize {
    let Some((parent, call)) = context.replayer().contexts.parent() else {
        diverge(context, &format!("thread {number} does not exist here"))
    };
    context.replayer().contexts.early.push(number);
    make_child(context, parent, call, number)
}

/// The running thread's call has made a child that shares its memory, which may have run and
/// ended meanwhile.
pub fn has_child(context: &mut Context, number: i32, call: InCall) {
    let contexts = &mut context.replayer().contexts;
    if let Some(index) = contexts.early.iter().position(|early| *early == number) {
        contexts.early.swap_remove(index);
        return;
    }
    let current = contexts.current;
    let (engine, thread) = context.parts();
    thread.registers = engine.cpu.registers;
    make_child(context, current, call, number);
}

fn make_child(context: &mut Context, parent: usize, call: InCall, number: i32) -> usize {
    let engine = context.engine();
    let parent = &engine.replayer().contexts.all[parent];
    let (gs, pointer) = (parent.gs, parent.thread);
    // SAFETY: nobody else refers to it: it does not run, or is the one that all of is borrowed here.
    let parent = unsafe { pointer.as_ref() };
    let (flags, stack, tls) = match call.number as i64 {
        libc::SYS_vfork => ((libc::CLONE_VM | libc::CLONE_VFORK) as u64, 0, 0),
        _ => (call.arguments[0], call.arguments[1], call.arguments[4]),
    };
    let mut child = child_of(parent.registers, parent, parent.block, (flags, stack, tls));
    child.set_tid(number);
    child.foreign = true;
    if flags & libc::CLONE_SIGHAND as u64 == 0 {
        let own = parent.signals.actions.clone();
        child.signals.actions =
            Some(own.unwrap_or_else(|| Box::new(engine.process.actions.clone())));
    }
    let all = &mut engine.replayer().contexts.all;
    all.push(Carried::new(child, gs, State::Stopped));
    all.len() - 1
}

/// Whether a call makes a process that shares memory with its parent.
pub fn shares_memory(call: &InCall) -> bool {
    let flags = call.arguments[0];
    match call.number as i64 {
        libc::SYS_vfork => true,
        libc::SYS_clone => {
            flags & libc::CLONE_VM as u64 != 0 && flags & libc::CLONE_THREAD as u64 == 0
        }
        _ => false,
    }
}
