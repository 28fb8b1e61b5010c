//! Another process of the tool that a guest traces by the kernel's means: what the tracer is shown of it are
//! its guest's registers and stops. [`crate::runner::traced`] is the other side.
//!
//! The tool lies at the same place in every process, so what is where in the other is known here.
//!
//! Not done: breakpoints and single steps in a process that runs under the engine. Debuggers start programs by
//! `execve`, and those run natively when they are traced.

use crate::layout;
use crate::runner::cache;
use crate::runner::context::{self, Context};
use crate::runner::cpu::{CPU, Registers, VECTOR_MASK};
use crate::runner::engine::Engine;
use crate::runner::engine::parts::Threads;
use crate::runner::signal::KICK;
use crate::runner::thread::{SharedState, Thread, VECTOR_USED};
use crate::runner::traced::TRACED;
use crate::sys::syscall;
use std::mem::{ManuallyDrop, MaybeUninit, offset_of};
use std::sync::Arc;

/// Words of the kernel's `struct user_regs_struct`.
pub const WORDS: usize = 27;
const RIP: usize = 16;
const CS: usize = 17;
const FLAGS: usize = 18;
const CALL: usize = 15;
const FS: usize = 21;
/// Where each general register stands there, by hardware number.
const PLACES: [usize; 16] = [10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0];
const CODE_64: u64 = 0x33;
const TRAP_FLAG: u64 = 0x100;

/// A traced thread of the tool's that stands still.
pub struct Tracee {
    number: i32,
    /// Its registers as the kernel has them.
    kernel: [u64; WORDS],
}

impl Tracee {
    /// The thread of this number if the caller traces it, it has stopped, and it is one of the tool's.
    pub fn find(number: i32) -> Option<Self> {
        let mut kernel = [0u64; WORDS];
        // SAFETY: the kernel writes so many words.
        let answer = unsafe {
            syscall!(libc::SYS_ptrace, libc::PTRACE_GETREGS, number, 0, kernel.as_mut_ptr())
        };
        let ours = layout::ENGINE.contains(&kernel[RIP]) && kernel[CS] == CODE_64;
        (answer == 0 && ours).then_some(Self { number, kernel })
    }

    fn is_in_translated_code(&self) -> bool {
        cache::contains(self.kernel[RIP])
    }

    /// Copies a value out of the other process.
    ///
    /// # Safety
    /// The caller must take the copy for what it is: pointers in it are the other process's, and nothing in it may be
    /// dropped.
    unsafe fn copy<T>(&self, address: u64) -> Option<MaybeUninit<T>> {
        let mut value = MaybeUninit::<T>::uninit();
        let (own, theirs) =
            ([value.as_mut_ptr() as u64, size_of::<T>() as u64], [address, size_of::<T>() as u64]);
        // SAFETY: the kernel writes at most as many bytes as the value has.
        let answer = unsafe {
            let (own, theirs) = (own.as_ptr(), theirs.as_ptr());
            syscall!(libc::SYS_process_vm_readv, self.number, own, 1, theirs, 1, 0)
        };
        (answer == size_of::<T>() as i64).then_some(value)
    }

    fn word(&self, address: u64) -> Option<u64> {
        // SAFETY: a number.
        unsafe { self.copy::<u64>(address).map(|word| word.assume_init()) }
    }

    /// Where the other process has its record of the thread, and where the thread's registers.
    fn places(&self) -> Option<(u64, u64)> {
        let (engine, running) = context::roots();
        let running = self.word(running)?;
        if running != 0 && self.is_it(running) {
            return Some((
                running,
                (&raw const CPU) as u64 + offset_of!(crate::runner::cpu::Cpu, registers) as u64,
            ));
        }
        let engine = self.word(engine)?;
        let threads = engine + offset_of!(Engine, threads) as u64;
        let first = self.word(threads + offset_of!(Threads, first) as u64)?;
        // SAFETY: only its pointer and length are used, and nothing is dropped.
        let list = unsafe {
            let list = self.copy::<ManuallyDrop<Vec<*mut Thread>>>(
                threads + offset_of!(Threads, list) as u64,
            )?;
            list.assume_init()
        };
        let places =
            (0..list.len() as u64).map_while(|index| self.word(list.as_ptr() as u64 + 8 * index));
        let thread = places.chain([first]).find(|thread| *thread != 0 && self.is_it(*thread))?;
        Some((thread, thread + offset_of!(Thread, registers) as u64))
    }

    /// Whether the record at an address is that of the thread.
    fn is_it(&self, thread: u64) -> bool {
        // SAFETY: only its pointer is used, and nothing is dropped.
        let shared = unsafe {
            self.copy::<ManuallyDrop<Arc<SharedState>>>(thread + offset_of!(Thread, shared) as u64)
                .map(|shared| Arc::as_ptr(&shared.assume_init()) as u64)
        };
        let number =
            shared.and_then(|shared| self.word(shared + offset_of!(SharedState, tid) as u64));
        number.is_some_and(|number| number as u32 as i32 == self.number)
    }

    /// The guest's registers, as the kernel would have them.
    pub fn registers(&self) -> [u64; WORDS] {
        let mut words = self.kernel;
        if self.is_in_translated_code() || self.is_at_a_call() {
            return words;
        }
        // SAFETY: numbers.
        let found = self.places().and_then(|(_, place)| unsafe {
            self.copy::<Registers>(place).map(|registers| registers.assume_init())
        });
        if let Some(registers) = found {
            for (number, place) in PLACES.iter().enumerate() {
                words[*place] = registers.general[number];
            }
            words[RIP] = registers.pc;
            words[FLAGS] = registers.flags | 0x202;
            words[FS] = registers.fs;
            // In a call of the guest's, or one of ours: nothing to be made again.
            words[CALL] = u64::MAX;
        }
        words
    }

    /// Whether it reports a signal, so that it notices what its tracer changes.
    pub fn is_at_a_fault(&self) -> bool {
        self.word(TRACED.report_place()).is_some_and(|report| report != 0)
    }

    /// Gives the guest other registers.
    pub fn set_registers(&self, words: &[u64; WORDS]) -> bool {
        let Some((_, place)) = self.places().filter(|_| !self.is_in_translated_code()) else {
            return false;
        };
        let mut registers = Registers {
            flags: words[FLAGS],
            fs: words[FS],
            pc: words[RIP],
            ..Registers::default()
        };
        for (number, place) in PLACES.iter().enumerate() {
            registers.general[number] = words[*place];
        }
        let own = [(&raw const registers) as u64, size_of::<Registers>() as u64];
        self.write(place, own)
    }

    fn write(&self, place: u64, own: [u64; 2]) -> bool {
        write(self.number, place, own)
    }

    /// The guest's vector registers, in the processor's format.
    pub fn vectors(&self) -> Option<Vec<u8>> {
        let (thread, _) = self.places()?;
        let start = self.word(thread + offset_of!(Thread, vector) as u64)?;
        // SAFETY: bytes.
        let mut bytes = unsafe { self.copy::<[u8; VECTOR_USED]>(start)?.assume_init() }.to_vec();
        // Where the kernel says which parts there are.
        bytes[464..472].copy_from_slice(&VECTOR_MASK.to_le_bytes());
        Some(bytes)
    }

    /// Whether its stop is not the guest's: then it has gone on already.
    pub fn hides(&self, status: i32) -> bool {
        let (signal, event) = (status >> 8 & 0xff, status >> 16);
        if status & 0xff != 0x7f || event != 0 || signal & 0x80 != 0 {
            return false;
        }
        let ends = self.word((&raw const TRACED.ends) as u64).unwrap_or_default() as i32;
        if signal == KICK || ends == signal {
            return self.goes_on(signal);
        }
        if !self.is_in_translated_code() {
            return false;
        }
        match signal {
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => {
                self.stops_later(signal)
            }
            // A step that the tracer has asked for, and not the engine.
            libc::SIGTRAP if self.kernel[FLAGS] & TRAP_FLAG == 0 && self.has_stepped() => false,
            _ => self.goes_on(signal),
        }
    }

    /// Whether it has stopped at a system call, which is the engine's own: of the guest's the kernel knows no more.
    fn is_at_a_call(&self) -> bool {
        const TRAP: i32 = libc::SIGTRAP;
        self.information().is_some_and(|information| {
            information[0] == TRAP && [TRAP, TRAP | 0x80].contains(&information[2])
        })
    }

    fn has_stepped(&self) -> bool {
        self.information().is_some_and(|information| information[2] == libc::TRAP_TRACE)
    }

    /// What came with the signal; nothing if the whole process was stopped before.
    fn information(&self) -> Option<[i32; 32]> {
        let mut information = [0i32; 32];
        // SAFETY: the kernel writes 128 bytes.
        let answer = unsafe {
            syscall!(
                libc::SYS_ptrace,
                libc::PTRACE_GETSIGINFO,
                self.number,
                0,
                information.as_mut_ptr()
            )
        };
        (answer == 0).then_some(information)
    }

    fn goes_on(&self, signal: i32) -> bool {
        // SAFETY: lets a process that this one traces go on.
        unsafe { syscall!(libc::SYS_ptrace, libc::PTRACE_CONT, self.number, 0, signal) == 0 }
    }

    /// Signals that stop have no handler: the dispatcher is asked to look, and sends it again.
    fn stops_later(&self, signal: i32) -> bool {
        let own = [(&raw const signal) as u64, 4];
        let places = [(&raw const TRACED.stop_wanted) as u64, (&raw const TRACED.asked) as u64];
        if self.information().is_none() || !places.iter().all(|place| self.write(*place, own)) {
            return false;
        }
        // SAFETY: sends a signal.
        unsafe { syscall!(libc::SYS_tkill, self.number, KICK) };
        self.goes_on(0)
    }
}

/// A process of the tool is traced from now on.
pub fn attached(number: i32) {
    let yes = 1i32;
    write(number, (&raw const TRACED.perhaps) as u64, [(&raw const yes) as u64, 4]);
}

fn write(number: i32, place: u64, own: [u64; 2]) -> bool {
    let theirs = [place, own[1]];
    // SAFETY: the kernel reads what the caller has.
    let answer = unsafe {
        syscall!(libc::SYS_process_vm_writev, number, own.as_ptr(), 1, theirs.as_ptr(), 1, 0)
    };
    answer == own[1] as i64
}

/// A call that waits for others has come back: whether what it tells of is not to be told, and it is to be made
/// again.
pub fn waits_on(context: &mut Context, number: u64, a: [u64; 6], answer: i64) -> bool {
    use crate::runner::guest;
    if !context.engine().threads.traces {
        return false;
    }
    const CLD_STOPPED: u32 = 5;
    const CLD_TRAPPED: u32 = 4;
    let told = match number as i64 {
        libc::SYS_wait4 if answer > 0 && a[1] != 0 => {
            guest::read_u32(a[1]).map(|status| (answer as i32, status as i32))
        }
        libc::SYS_waitid if answer == 0 && a[2] != 0 && a[3] & libc::WNOWAIT as u64 == 0 => {
            let word = |offset| guest::read_u32(a[2] + offset);
            word(8)
                .filter(|code| [CLD_STOPPED, CLD_TRAPPED].contains(code))
                .and_then(|_| Some((word(16)? as i32, (word(24)? as i32) << 8 | 0x7f)))
        }
        _ => None,
    };
    told.is_some_and(|(process, status)| Tracee::find(process).is_some_and(|it| it.hides(status)))
}
