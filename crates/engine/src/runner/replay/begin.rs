//! Builds a process as the beginning of its log says it was.

use super::contexts::{self, Contexts, InCall};
use super::control::{self, Control};
use super::memory::{self, Files};
use super::source::{Source, unreadable};
use super::{Replayer, diverge, run};
use crate::config::Config;
use crate::layout;
use crate::runner::context::{self, Context};
use crate::runner::cpu::Registers;
use crate::runner::engine::Engine;
use crate::runner::load::Arguments;
use crate::runner::memory::{Mapping, Memory};
use crate::runner::report;
use crate::runner::signal::{Action, Mask};
use crate::runner::stack::StackBlock;
use crate::runner::thread::Thread;
use crate::runner::{clock, signal};
use crate::sys::syscall;
use recording::log::{Entry, Image, ThreadData};
use recording::{Quirks, Recording};
use std::fs::File;
use std::os::fd::FromRawFd;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

/// Replays what the configuration says; the calling kernel thread carries all of the guest's.
pub fn start(mut config: Config, block: StackBlock) -> ! {
    let Some(how) = config.replaying.clone() else { report::refuse("nothing to replay", 0) };
    // SAFETY: the host has opened it for us, and nobody else in this process uses it.
    let file = unsafe { File::from_raw_fd(how.file) };
    let recording = Recording::from_file(file)
        .unwrap_or_else(|error| report::refuse(&format!("the recording: {error}"), 0));
    let Some((first, path)) = how.processes.split_first() else {
        report::refuse("no process to replay", 0)
    };
    if let Some(quirks) = recording.meta().quirks {
        // What this processor refuses to load cannot be followed; the replay then says where.
        let base_bits = quirks.base_bits.min(config.quirks.base_bits);
        config.quirks = Quirks { base_bits, ..quirks };
    }
    let source = Source::open(&recording, *first);
    let replayer = Replayer {
        contexts: Contexts::new(Vec::new()),
        files: Files::new(recording.clone()),
        path: path.to_vec(),
        process: *first,
        tree: how.tree,
        begun: Vec::new(),
        source,
        recording,
        checks: 0,
        last_call: 0,
        outputs: how.outputs,
        shown: 0,
        control: how.control.map(Control::new),
        diversion: None,
        twin: None,
    };
    let arguments = Arguments {
        arguments: Vec::new(),
        environment: Vec::new(),
        path: Vec::new(),
        auxiliary: Vec::new(),
    };
    let mut fresh = Engine::new(config, Memory::default(), PathBuf::new(), arguments);
    fresh.log.replayer = Some(Box::new(replayer));
    context::install(fresh);
    // Nobody runs before the image has been read.
    let nobody = Box::leak(Thread::new(block, Registers::default()));
    block.set_owner(Arc::as_ptr(&nobody.shared));
    // SAFETY: the calling kernel thread carries all threads of the replay, one at a time.
    let context = &mut unsafe { Context::new(NonNull::from(nobody)) };
    ignore_children();
    signal::be_deaf();
    let running = build(context, block);
    context.engine().process.actions.take_over();
    block.use_for_signals();
    contexts::switch(context, running);
    if context.replayer().control.is_some() {
        control::stop(context, None, None);
    }
    run(context)
}

/// Copies of this process that end need nobody to wait for them.
fn ignore_children() {
    let action = Action { handler: signal::IGNORE, ..Action::default() };
    // SAFETY: the kernel only reads the action.
    unsafe { syscall!(libc::SYS_rt_sigaction, libc::SIGCHLD, &raw const action, 0, 8) };
}

/// Makes memory and threads from the image; the number of the thread that runs.
fn build(context: &mut Context, block: StackBlock) -> i32 {
    let Some(Entry::Image(image)) = context.replayer().source.take() else {
        unreadable("it was cut before the program began")
    };
    clear_stack();
    for data in &image.mappings {
        let mapping = Mapping {
            protection: libc::PROT_READ | libc::PROT_WRITE,
            shared: data.shared,
            file: data.path.as_deref().map(Into::into),
            offset: data.offset,
            identity: data.view.filter(|_| data.shared).map(|view| (0, view.identity)),
            view: data.view,
        };
        memory::map(context, data.start..data.end, mapping, data.view.as_ref());
    }
    fill(context);
    for data in &image.mappings {
        let length = data.end - data.start;
        let protection = memory::readable(data.protection);
        // SAFETY: the guest's own memory.
        unsafe { syscall!(libc::SYS_mprotect, data.start, length, protection) };
        context.engine().process.memory.protect(data.start..data.end, data.protection);
    }
    take_up(context, &image, block);
    image.running
}

/// The guest's stack is where the kernel has put this process's own, which is not needed any more.
fn clear_stack() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines().filter(|line| line.contains("[stack]")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let Some((start, end)) = range else { continue };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16))
        else {
            continue;
        };
        // SAFETY: the runner runs on a block of its own; nothing refers to the first stack.
        unsafe { syscall!(libc::SYS_munmap, start, end - start) };
    }
}

/// Puts the contents of memory in.
fn fill(context: &mut Context) {
    while let Some(Entry::Pages { start }) = context.replayer().source.peek() {
        let start = *start;
        let source = &mut context.replayer().source;
        let length = source.payload_length();
        source.take();
        if layout::belongs_to_engine(&(start..start.saturating_add(length)))
            || !context.engine().process.memory.is_readable(start, length)
        {
            diverge(context, "an image has contents where nothing is mapped");
        }
        // SAFETY: mapped and writable, as just seen.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, length as usize) };
        context.replayer().source.payload(bytes);
    }
}

fn take_up(context: &mut Context, image: &Image, block: StackBlock) {
    let engine = context.engine();
    engine.process.executable = PathBuf::from(&image.executable);
    engine.process.memory.heap = image.heap.0..image.heap.1;
    engine.process.memory.stack_room = image.stack_room;
    engine.config.filters = serde_json::from_slice(&image.filters).unwrap_or_default();
    for (index, [handler, flags, restorer, mask]) in image.actions.iter().enumerate() {
        let (handler, flags, restorer, mask) = (*handler, *flags, *restorer, *mask);
        engine.process.actions.set(index as i32 + 1, Action { handler, flags, restorer, mask });
    }
    clock::set(context.cpu(), image.time);
    let threads = image.threads.iter().map(|data| {
        let call = data.call.map(|(number, arguments, check)| InCall { number, arguments, check });
        (thread(data, block), data.bases[1], call)
    });
    context.replayer().contexts = Contexts::new(threads.collect());
}

/// A thread as it was.
pub fn thread(data: &ThreadData, block: StackBlock) -> Box<Thread> {
    let mut thread = Thread::new(block, Registers::default());
    thread.set_tid(data.number);
    put(&mut thread, data);
    thread
}

/// Gives a thread that does not run the registers and settings that it had.
pub fn put(thread: &mut Thread, data: &ThreadData) {
    thread.registers =
        Registers { general: data.general, flags: data.flags, fs: data.bases[0], pc: data.pc };
    let length = data.vector.len().min(thread.vector.0.len());
    thread.vector.0[..length].copy_from_slice(&data.vector[..length]);
    thread.vector.sanitize();
    thread.signals.mask = Mask(data.mask);
    thread.signals.stack = data.signal_stack;
    thread.kernel.clear_tid = data.clear_tid;
    thread.kernel.robust_list = data.robust_list;
}
