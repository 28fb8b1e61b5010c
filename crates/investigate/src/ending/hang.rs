//! A program that somebody else ended: what each of its threads was doing at that moment, and for whom it
//! waited.

use super::Class;
use crate::case::Case;
use crate::scene::{At, registers_of};
use crate::threads::Threads;
use base::{Address, Place, ThreadNumber, Tick};
use recording::log::{Entry, ThreadData, entries};
use replay::{StoppedProcess, Timeline};
use serde::Serialize;
use symbols::{Memory, Program, Scene};
use syscalls::number as n;

/// Frames looked at of each thread.
const FRAMES: usize = 64;
/// Where glibc keeps the id of the thread that holds a mutex, behind the word that is waited for.
pub const OWNER: u64 = 8;

/// A thread at the end.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadAt {
    /// Its number.
    pub thread: ThreadNumber,
    /// The kernel's id.
    pub kernel_thread: i32,
    /// The innermost place of the program's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Its active calls of the program's own code, innermost first.
    pub stack: Vec<Place>,
    /// What it was waiting for; nothing if it was running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Wait>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// A lock.
    Lock {
        /// What the program calls it.
        name: String,
        /// Where it is.
        address: Address,
        /// Who holds it.
        #[serde(skip_serializing_if = "Option::is_none")]
        holder: Option<ThreadNumber>,
    },
    /// The end of a thread.
    Join {
        /// Which.
        thread: ThreadNumber,
    },
    /// A condition variable, a semaphore, or whatever else others wake up.
    Wakeup {
        /// What the program calls it.
        name: String,
        /// Where it is.
        address: Address,
    },
    /// Something to come in.
    Input {
        /// The system call.
        call: &'static str,
        /// The descriptor.
        descriptor: i32,
        /// What is behind it, and where it was opened, as far as that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        opened: Option<Opened>,
    },
    /// A child to end.
    Child,
    /// Time to pass.
    Time,
    /// Another system call.
    Call(&'static str),
}

/// Where a descriptor came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opened {
    /// The system call that gave it.
    pub call: &'static str,
    /// Where the program made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A program that did not end by itself.
#[derive(Clone, Debug, Serialize)]
pub struct Hang {
    /// All threads.
    pub threads: Vec<ThreadAt>,
    /// Threads that wait for each other in a circle, if there are any: each for the next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<ThreadNumber>,
}

impl Hang {
    /// Looks at a process where it was ended. The thread that was interrupted comes first.
    pub fn of(
        case: &Case,
        process: u32,
        line: &mut Timeline,
        end: &StoppedProcess,
    ) -> anyhow::Result<Self> {
        let program = case.program(&end.at.modules)?;
        let numbers = Threads::of(case.recording(), process);
        let looking = Looking { case, process, program: &program, numbers: &numbers, end };
        let mut threads = Vec::new();
        for data in &end.at.threads {
            threads.push(looking.thread(data, line)?);
        }
        let interrupted = end.at.thread.number;
        threads.sort_by_key(|thread| (thread.kernel_thread != interrupted, thread.thread));
        let circle = circle(&threads);
        Ok(Self { threads, circle })
    }

    /// What kind of hang it is.
    pub fn class(&self) -> Class {
        if !self.circle.is_empty() {
            Class::Deadlock
        } else if self.threads.iter().any(|thread| thread.waits.is_none()) {
            Class::EndlessLoop
        } else {
            Class::Waiting
        }
    }

    /// The thread that runs, if one does.
    pub fn running(&self) -> Option<&ThreadAt> {
        self.threads.iter().find(|thread| thread.waits.is_none())
    }
}

/// Threads that wait for each other in a circle.
fn circle(threads: &[ThreadAt]) -> Vec<ThreadNumber> {
    let waits_for = |number: ThreadNumber| {
        let thread = threads.iter().find(|thread| thread.thread == number)?;
        match thread.waits.as_ref()? {
            Wait::Lock { holder, .. } => *holder,
            Wait::Join { thread } => Some(*thread),
            _ => None,
        }
    };
    for start in threads {
        let mut way = vec![start.thread];
        while let Some(next) = way.last().and_then(|last| waits_for(*last)) {
            if let Some(at) = way.iter().position(|known| *known == next) {
                return way.split_off(at);
            }
            way.push(next);
        }
    }
    Vec::new()
}

/// What is needed to look at threads.
struct Looking<'a> {
    case: &'a Case,
    process: u32,
    program: &'a Program,
    numbers: &'a Threads,
    end: &'a StoppedProcess,
}

impl Looking<'_> {
    fn thread(&self, data: &ThreadData, line: &mut Timeline) -> anyhow::Result<ThreadAt> {
        let memory = At(self.end);
        let stack = self.program.unwind_at_most(&registers_of(data), &memory, FRAMES);
        let thread_pointer = Some(Address(data.bases[0]));
        let scene = Scene { program: self.program, memory: &memory, stack: &stack, thread_pointer };
        let (mut own, mut library) = (Vec::new(), Vec::new());
        for call in scene.each_call() {
            let line = call.line.filter(|line| line.line > 0 && base::is_own_source(&line.file));
            match line {
                Some(line) => own.push(Place {
                    file: Some(line.file),
                    line: Some(line.line),
                    function: call.function,
                    address: Some(call.pc),
                }),
                None if own.is_empty() => library.extend(call.function),
                None => {}
            }
        }
        let waits = match self.call_of(data) {
            Some((number, arguments)) => {
                Some(self.wait(&scene, number, arguments, &library, line)?)
            }
            None => None,
        };
        let tick = Tick(self.end.at.time);
        Ok(ThreadAt {
            thread: self.numbers.number(data.number, tick),
            kernel_thread: data.number,
            place: own.first().cloned(),
            stack: own,
            waits,
        })
    }

    /// The system call that a thread is in: number and arguments. Of the one that was interrupted the
    /// number is in the log alone, as the answer stands where it was.
    fn call_of(&self, data: &ThreadData) -> Option<(u64, [u64; 6])> {
        if let Some((number, arguments, _)) = data.call {
            return Some((number, arguments));
        }
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let mut code = [0; 2];
        let behind = At(self.end).read(Address(data.pc.wrapping_sub(2)), &mut code);
        let interrupted =
            (-516..=-512).contains(&(data.general[0] as i64)) || data.general[0] as i64 == -4;
        if !behind || code != SYSCALL || !interrupted {
            return None;
        }
        let log = self.case.recording().log(self.process).ok()?;
        let last = entries(log).filter_map(|(entry, _)| match entry {
            Entry::Call(call) => Some(call),
            _ => None,
        });
        let last = last.last().filter(|call| call.answer < 0)?;
        let [rdi, rsi, rdx, r10, r8, r9] = [7, 6, 2, 10, 8, 9].map(|at: usize| data.general[at]);
        Some((last.number, [rdi, rsi, rdx, r10, r8, r9]))
    }

    fn wait(
        &self,
        scene: &Scene<'_>,
        number: u64,
        arguments: [u64; 6],
        library: &[String],
        line: &mut Timeline,
    ) -> anyhow::Result<Wait> {
        let descriptor = arguments[0] as i32;
        let name = syscalls::name(number).unwrap_or("a system call");
        Ok(match number {
            n::futex => self.futex(scene, arguments[0], library),
            n::read
            | n::readv
            | n::pread64
            | n::recvfrom
            | n::recvmsg
            | n::accept
            | n::accept4
            | n::epoll_wait
            | n::epoll_pwait
            | n::write
            | n::sendto
            | n::connect
            | n::flock => {
                Wait::Input { call: name, descriptor, opened: self.opened(descriptor, line)? }
            }
            n::poll | n::ppoll => {
                let mut first = [0; 4];
                scene.memory.read(Address(arguments[0]), &mut first);
                let descriptor = i32::from_le_bytes(first);
                Wait::Input { call: name, descriptor, opened: self.opened(descriptor, line)? }
            }
            n::wait4 | n::waitid => Wait::Child,
            n::nanosleep | n::clock_nanosleep => Wait::Time,
            _ => Wait::Call(name),
        })
    }

    /// A futex means what the functions around it say that it does.
    fn futex(&self, scene: &Scene<'_>, address: u64, library: &[String]) -> Wait {
        let has = |words: &[&str]| {
            library.iter().any(|function| words.iter().any(|word| function.contains(word)))
        };
        let kernel = |at: u64| {
            let mut word = [0; 4];
            scene.memory.read(Address(at), &mut word).then(|| i32::from_le_bytes(word))
        };
        let number = |id: Option<i32>| {
            let id = id.filter(|id| self.end.at.threads.iter().any(|one| one.number == *id))?;
            Some(self.numbers.number(id, Tick(self.end.at.time)))
        };
        let name = named(scene, address);
        if has(&["join"])
            && let Some(thread) = number(kernel(address))
        {
            return Wait::Join { thread };
        }
        if has(&["mutex", "Mutex", "lll_lock_wait", "rwlock", "RwLock"])
            && !has(&["cond", "Condvar"])
        {
            let holder = number(kernel(address.wrapping_add(OWNER)));
            return Wait::Lock { name, address: Address(address), holder };
        }
        Wait::Wakeup { name, address: Address(address) }
    }

    /// Which call gave the program a descriptor, and where.
    fn opened(&self, descriptor: i32, line: &mut Timeline) -> anyhow::Result<Option<Opened>> {
        let Ok(log) = self.case.recording().log(self.process) else { return Ok(None) };
        let mut found = None;
        for (entry, payload) in entries(log) {
            let Entry::Call(call) = entry else { continue };
            let gives = match call.number {
                n::open
                | n::openat
                | n::socket
                | n::accept
                | n::accept4
                | n::dup
                | n::dup2
                | n::dup3
                | n::epoll_create
                | n::epoll_create1
                | n::eventfd2
                | n::timerfd_create
                | n::memfd_create
                | n::creat => call.answer == i64::from(descriptor),
                n::pipe | n::pipe2 | n::socketpair => {
                    let both = payload.chunks_exact(4).take(2);
                    call.answer == 0 && both.into_iter().any(|one| one == descriptor.to_le_bytes())
                }
                _ => false,
            };
            if gives {
                found = Some((call.time, call.number));
            }
        }
        let Some((time, number)) = found else { return Ok(None) };
        let at = replay::Instant { time, pc: None };
        let standing = line.seek(at).map_err(crate::error::fault_or_input)?;
        let stack =
            self.program.unwind_at_most(&registers_of(&standing.at.thread), &At(&standing), FRAMES);
        let pcs = stack.frames.iter().map(|frame| frame.code().0);
        let place =
            pcs.into_iter().find_map(|pc| analyze::slice::view::own_place(self.program, pc));
        Ok(Some(Opened { call: syscalls::name(number).unwrap_or("a system call"), place }))
    }
}

/// What the program calls some memory: by a variable of an active call, or a static one.
fn named(scene: &Scene<'_>, address: u64) -> String {
    let levels = scene.each_call().map(|call| call.level).take(12);
    let mut names = levels.filter_map(|level| {
        let naming = scene.names_of(level, Address(address)).into_iter().next()?;
        Some(naming.expression)
    });
    let found =
        names.next().or_else(|| scene.program.symbol_at(Address(address)).map(|(name, _)| name));
    // The C library's own members of a lock say nothing to a reader.
    let inside = [".__data", ".data.lock", ".futex", ".inner"];
    let found = found.map(|name| {
        let end = inside.iter().filter_map(|part| name.find(part)).min().unwrap_or(name.len());
        name[..end].to_owned()
    });
    found.unwrap_or_else(|| Address(address).to_string())
}

/// Whether the last thing that a process did was to send a signal, as far as the log tells.
pub fn sent_itself(case: &Case, process: u32) -> bool {
    const SENDING: [u64; 6] = [
        n::kill,
        n::tkill,
        n::tgkill,
        n::rt_sigqueueinfo,
        n::rt_tgsigqueueinfo,
        n::pidfd_send_signal,
    ];
    let Ok(log) = case.recording().log(process) else { return false };
    let calls = entries(log).filter_map(|(entry, _)| match entry {
        Entry::Call(call) => Some(call.number),
        _ => None,
    });
    calls.last().is_some_and(|last| SENDING.contains(&last))
}
