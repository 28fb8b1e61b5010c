//! The guest's threads while they are replayed: contexts of one kernel thread.

use super::begin::{put, thread};
use super::diverge;
use crate::runner::cpu;
use crate::runner::engine::{self, engine};
use crate::runner::record::image::thread_data;
use crate::runner::stack::Block;
use crate::runner::syscall::process::child_of;
use crate::runner::thread::Thread;
use recording::log::ThreadData;

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

struct Context {
    thread: Box<Thread>,
    gs: u64,
    state: State,
}

/// All threads, one of which is in the processor.
pub struct Contexts {
    all: Vec<Context>,
    /// Index of the one that runs. Past the end when it has ended.
    current: usize,
    /// Children that share memory and ran before the call that made them was over.
    early: Vec<i32>,
}

impl Contexts {
    /// With the threads of an image, none of which runs yet.
    pub fn new(threads: Vec<(Box<Thread>, u64, Option<InCall>)>) -> Self {
        let context = |(thread, gs, call): (_, _, Option<InCall>)| Context {
            thread,
            gs,
            state: call.map_or(State::Stopped, State::InCall),
        };
        Self {
            all: threads.into_iter().map(context).collect(),
            current: usize::MAX,
            early: Vec::new(),
        }
    }

    /// The thread that runs.
    pub fn current(&mut self) -> &'static mut Thread {
        let thread: *mut Thread = match self.all.get_mut(self.current) {
            Some(context) => &raw mut *context.thread,
            None => diverge("nobody runs"),
        };
        // SAFETY: boxed, and freed only when another thread runs.
        unsafe { &mut *thread }
    }

    /// The thread that runs, if it has not ended.
    pub fn current_or_none(&mut self) -> Option<&mut Thread> {
        self.all.get_mut(self.current).map(|context| &mut *context.thread)
    }

    /// Its number.
    pub fn number(&self) -> i32 {
        self.all.get(self.current).map_or(0, |context| context.thread.tid)
    }

    /// Whether the thread that runs cannot go on by itself.
    pub fn is_parked(&self) -> bool {
        self.all.get(self.current).is_none_or(|context| !matches!(context.state, State::Runs))
    }

    /// The running thread stops, for others to run.
    pub fn park(&mut self) {
        self.all[self.current].state = State::Stopped;
    }

    /// The running thread is in a system call.
    pub fn park_in(&mut self, call: InCall) {
        self.all[self.current].state = State::InCall(call);
    }

    /// The call that the running thread is in, which is now over.
    pub fn unpark(&mut self) -> Option<InCall> {
        let context = self.all.get_mut(self.current)?;
        match std::mem::replace(&mut context.state, State::Runs) {
            State::InCall(call) => Some(call),
            _ => None,
        }
    }

    /// A new thread.
    pub fn add(&mut self, thread: Box<Thread>) {
        self.all.push(Context { thread, gs: cpu::gs_base(), state: State::Stopped });
    }

    /// The running thread has ended.
    pub fn end_current(&mut self) {
        let context = self.all.swap_remove(self.current);
        self.current = usize::MAX;
        // The signal handler looks at it until another one runs.
        std::mem::forget(context.thread);
    }

    /// All threads as they are.
    pub fn data(&mut self) -> Vec<ThreadData> {
        if let Some(context) = self.all.get_mut(self.current) {
            context.thread.move_out();
            context.gs = cpu::gs_base();
        }
        let data = |context: &Context| ThreadData {
            bases: [context.thread.registers.fs, context.gs],
            call: match context.state {
                State::InCall(call) => Some((call.number, call.arguments, call.check)),
                _ => None,
            },
            ..thread_data(&context.thread)
        };
        self.all.iter().map(data).collect()
    }

    /// All threads but the running one are gone, and it has another number.
    pub fn only_current(&mut self, number: i32) {
        let current = self.all.swap_remove(self.current);
        self.all.clear();
        self.all.push(current);
        self.current = 0;
        self.all[0].thread.tid = number;
        self.all[0].thread.foreign = false;
        if let Some(actions) = self.all[0].thread.own_actions.take() {
            engine().actions = *actions;
        }
    }

    /// Another thread runs.
    pub fn switch(&mut self, number: i32) {
        if let Some(context) = self.all.get_mut(self.current) {
            context.thread.move_out();
            context.gs = cpu::gs_base();
        }
        let found = self.all.iter().position(|context| context.thread.tid == number);
        self.current = found.unwrap_or_else(|| self.child(number));
        let context = &mut self.all[self.current];
        if let State::Stopped = context.state {
            context.state = State::Runs;
        }
        let thread: *mut Thread = &raw mut *context.thread;
        cpu::set_gs_base(context.gs);
        context.thread.block.set_owner(thread);
        context.thread.move_in();
        engine::set_running(thread);
        engine().record_thread(number);
    }

    /// A thread runs, from wherever it was later on; it may be new.
    pub fn resume(&mut self, data: &ThreadData, block: Block) {
        if let Some(context) = self.all.get_mut(self.current) {
            context.thread.move_out();
            context.gs = cpu::gs_base();
        }
        self.current = usize::MAX;
        let gs = data.bases[1];
        match self.all.iter_mut().find(|context| context.thread.tid == data.number) {
            Some(context) => {
                put(&mut context.thread, data);
                (context.gs, context.state) = (gs, State::Stopped);
            }
            None => {
                let thread = thread(data, block);
                self.all.push(Context { thread, gs, state: State::Stopped });
            }
        }
        self.switch(data.number);
    }

    /// A child that shares its parent's memory, made by a call that has not returned yet.
    fn child(&mut self, number: i32) -> usize {
        let mut all = self.all.iter().enumerate();
        let parent = all.find_map(|(index, context)| match context.state {
            State::InCall(call) if shares_memory(&call) => Some((index, call)),
            _ => None,
        });
        let Some((parent, call)) = parent else {
            diverge(&format!("thread {number} does not exist here"))
        };
        self.early.push(number);
        self.make_child(parent, call, number)
    }

    /// The running thread's call has made a child that shares its memory, which may have run and
    /// ended meanwhile.
    pub fn has_child(&mut self, number: i32, call: InCall) {
        if let Some(index) = self.early.iter().position(|early| *early == number) {
            self.early.swap_remove(index);
            return;
        }
        let registers = cpu::cpu().registers;
        self.current().registers = registers;
        self.make_child(self.current, call, number);
        cpu::cpu().registers = registers;
    }

    fn make_child(&mut self, parent: usize, call: InCall, number: i32) -> usize {
        let parent = &self.all[parent];
        let (flags, stack, tls) = match call.number as i64 {
            libc::SYS_vfork => ((libc::CLONE_VM | libc::CLONE_VFORK) as u64, 0, 0),
            _ => (call.arguments[0], call.arguments[1], call.arguments[4]),
        };
        cpu::cpu().registers = parent.thread.registers;
        let mut child = child_of(&parent.thread, parent.thread.block, flags, stack, tls);
        child.tid = number;
        child.foreign = true;
        if flags & libc::CLONE_SIGHAND as u64 == 0 {
            let own = parent.thread.own_actions.clone();
            child.own_actions = Some(own.unwrap_or_else(|| Box::new(engine().actions.clone())));
        }
        let gs = parent.gs;
        self.all.push(Context { thread: child, gs, state: State::Stopped });
        self.all.len() - 1
    }
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
