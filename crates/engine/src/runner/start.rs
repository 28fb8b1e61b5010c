//! Turns a fresh process into a runner, before Rust's runtime or `main` have done anything that
//! the guest could notice.

use super::engine::{Engine, dispatch};
use super::load::{self, Arguments, InitialStack, LoadError};
use super::memory::{Mapping, Memory};
use super::stack::{self, StackBlock};
use super::syscall::files;
use super::thread::Thread;
use super::{arena, cpu, procfs, replay, report, signal};
use crate::config::{Config, VARIABLE};
use crate::image;
use crate::layout;
use crate::report::Message;
use crate::sys::{self, syscall};
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Whether SIGPIPE was ignored when the process started, before Rust's runtime ignored it.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether whoever started this process ignores SIGPIPE.
pub fn inherited_ignored_pipe() -> bool {
    PIPE_IGNORED.load(Ordering::Relaxed)
}

/// Which of the descriptors 0, 1 and 2 were closed when the process started, before Rust's runtime
/// put `/dev/null` there: one bit each.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Standard descriptors that whoever started this process had closed.
pub fn inherited_closed() -> impl Iterator<Item = i32> + Clone {
    let closed = CLOSED.load(Ordering::Relaxed);
    (0..3).filter(move |descriptor| closed & 1 << descriptor != 0)
}

/// The C start-up code calls this before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static EARLY: extern "C" fn(i32, *const *const i8, *const *const i8) = early;

struct Start {
    config: Config,
    arguments: Arguments,
}

extern "C" fn early(count: i32, arguments: *const *const i8, environment: *const *const i8) {
    let mut action = signal::Action::default();
    // SAFETY: the kernel writes one `Action`.
    unsafe { syscall!(libc::SYS_rt_sigaction, libc::SIGPIPE, 0, &raw mut action, 8) };
    PIPE_IGNORED.store(action.handler == signal::IGNORE, Ordering::Relaxed);
    for descriptor in 0..3 {
        // SAFETY: asks only.
        if unsafe { syscall!(libc::SYS_fcntl, descriptor, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
    // SAFETY: the C library passes the process's own vectors.
    let asked = unsafe { runner_descriptor(environment) };
    if let Some(descriptor) = asked {
        arena::enter_runner();
        report::install_panic_hook();
        let block =
            StackBlock::map(0).unwrap_or_else(|error| die(&format!("no stack: error {error}")));
        block.set_owner(std::ptr::null_mut());
        block.use_for_signals();
        signal::watch_own_faults();
        let config = read_config(descriptor);
        report::set_channel(config.channel);
        procfs::use_folder(config.proc);
        // SAFETY: as above; nothing else runs in this process yet.
        unsafe { keep_places(&config, arguments, environment) };
        // SAFETY: the descriptor was made for this and is not used again.
        unsafe { syscall!(libc::SYS_close, descriptor) };
        // SAFETY: as above.
        let start = unsafe { read_start(count, arguments, environment, config) };
        let start = Box::into_raw(Box::new((start, block)));
        stack::continue_on(block, main, start as u64);
    }
}

/// Everything has its place, the stack too, which the kernel puts anywhere unless told not to. An
/// `execve` that gains capabilities makes it forget; the next one, which gains nothing, does not.
///
/// # Safety
/// Both must be null-terminated vectors of C strings.
unsafe fn keep_places(config: &Config, arguments: *const *const i8, environment: *const *const i8) {
    const ASK: u32 = 0xffff_ffff;
    let fixed = libc::ADDR_NO_RANDOMIZE as i64;
    // SAFETY: asks only.
    let persona = unsafe { syscall!(libc::SYS_personality, ASK) };
    if persona & fixed != 0 {
        return;
    }
    // SAFETY: the caller's promise.
    let texts: Vec<&[u8]> = unsafe { strings(environment) }.collect();
    if texts.contains(&AGAIN) {
        // With `no_new_privs` what a process may gain is taken from it again, at every `execve` anew.
        STACK_IS_ELSEWHERE.store(true, Ordering::Relaxed);
        return;
    }
    let mut pointers: Vec<*const u8> = (0..texts.len())
        // SAFETY: as many as were just counted.
        .map(|index| unsafe { *environment.add(index) }.cast())
        .collect();
    let again = [AGAIN, b"\0"].concat();
    pointers.extend([again.as_ptr(), std::ptr::null()]);
    // SAFETY: the kernel reads vectors and strings that are alive.
    let error = unsafe {
        syscall!(libc::SYS_personality, persona | fixed);
        syscall!(
            libc::SYS_execveat,
            config.executable,
            c"".as_ptr(),
            arguments,
            pointers.as_ptr(),
            libc::AT_EMPTY_PATH
        )
    };
    die(&format!("the runner cannot be started again: error {}", -error))
}

/// The kernel has put the stack where it liked.
static STACK_IS_ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Says that the runner has been started a second time.
const AGAIN: &[u8] = b"WHYDUNIT_AGAIN=1";

/// A message and the end, before there is anything to report about.
fn die(what: &str) -> ! {
    report::refuse(what, 0)
}

/// # Safety
/// `environment` must be a null-terminated vector of C strings.
unsafe fn runner_descriptor(environment: *const *const i8) -> Option<i32> {
    // SAFETY: the caller's promise.
    let found = unsafe { strings(environment) }
        .find_map(|text| text.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    std::str::from_utf8(found).ok()?.parse().ok()
}

/// # Safety
/// `vector` must be a null-terminated vector of C strings that live on.
unsafe fn strings(vector: *const *const i8) -> impl Iterator<Item = &'static [u8]> {
    // SAFETY: the caller's promise, for this and every later entry.
    (0..).map(move |index| unsafe { *vector.add(index) }).take_while(|text| !text.is_null()).map(
        // SAFETY: as above.
        |text| unsafe { CStr::from_ptr(text).to_bytes() },
    )
}

/// # Safety
/// As [`strings`], and the auxiliary vector must follow the environment.
unsafe fn read_start(
    count: i32,
    arguments: *const *const i8,
    environment: *const *const i8,
    config: Config,
) -> Start {
    // SAFETY: the caller's promise.
    let (arguments, environment_texts) = unsafe {
        let arguments = strings(arguments).take(count as usize).map(<[u8]>::to_vec).collect();
        let environment: Vec<Vec<u8>> = strings(environment).map(<[u8]>::to_vec).collect();
        (arguments, environment)
    };
    let mut end = environment;
    // SAFETY: the auxiliary vector stands behind the environment's null pointer.
    let auxiliary = unsafe {
        while !(*end).is_null() {
            end = end.add(1);
        }
        let pairs = end.add(1).cast::<[u64; 2]>();
        (0..).map(move |index| *pairs.add(index)).take_while(|pair| pair[0] != 0)
    };
    let mut auxiliary: Vec<(u64, u64)> = auxiliary.map(|[kind, value]| (kind, value)).collect();
    keep_random(&mut auxiliary);
    let path = config.program.clone();
    let prefix = format!("{VARIABLE}=");
    let is_ours = |text: &Vec<u8>| text.starts_with(prefix.as_bytes()) || text == AGAIN;
    let environment = environment_texts.into_iter().filter(|text| !is_ours(text)).collect();
    Start { config, arguments: Arguments { arguments, environment, path, auxiliary } }
}

/// The kernel's sixteen random bytes are on the stack that will be overwritten.
fn keep_random(auxiliary: &mut [(u64, u64)]) {
    if let Some((_, address)) = auxiliary.iter_mut().find(|(kind, _)| *kind == libc::AT_RANDOM) {
        // SAFETY: the kernel put sixteen bytes there.
        let copy = Box::new(unsafe { *(*address as *const [u8; 16]) });
        *address = Box::into_raw(copy) as u64;
    }
}

fn read_config(descriptor: i32) -> Config {
    let mut text = vec![0; 64 << 10];
    loop {
        // SAFETY: the kernel writes at most the buffer's length.
        let got =
            unsafe { syscall!(libc::SYS_pread64, descriptor, text.as_mut_ptr(), text.len(), 0) };
        let got = got.max(0) as usize;
        if got < text.len() {
            text.truncate(got);
            break;
        }
        text.resize(2 * got, 0);
    }
    serde_json::from_slice(&text)
        .unwrap_or_else(|error| die(&format!("bad configuration: {error}")))
}

/// On the runner's own stack: everything below the guest is set up, then the guest starts.
extern "C" fn main(start: u64) -> ! {
    // SAFETY: made by `early` with `Box::into_raw`.
    let (Start { config, mut arguments }, block) =
        *unsafe { Box::from_raw(start as *mut (Start, StackBlock)) };
    check_processor();
    follow_host(&config);
    cpu::adopt_host_fs();
    if config.replaying.is_some() {
        hide_vdso();
        replay::start(config, block);
    }
    let mut memory = Memory::default();
    hide_vdso();
    reserve_stack(&mut memory);
    let path = PathBuf::from(std::ffi::OsString::from_vec(config.program.clone()));
    use std::os::unix::ffi::OsStringExt;
    let program = image::resolve(&path).unwrap_or_else(|why| {
        report::send(&Message::Note(format!("{} {why}", path.display())));
        sys::exit_group(127)
    });
    apply_script(&mut arguments, &program.prepended);
    let loaded = load::load(&program, &mut memory, config.layout)
        .unwrap_or_else(|error| cannot_load(&path, error));
    name_process(&path);
    let top = layout::USER_END - config.layout.stack;
    // SAFETY: this code runs on the block; the main stack is free.
    let stack = unsafe { load::build_stack(top, &mut arguments, &loaded) };
    show_in_proc(&stack, &arguments);
    if program.image.executable_stack {
        memory.protect(layout::USER_END - memory.stack_room..layout::USER_END, 7);
    }
    if config.native {
        run_natively(loaded.entry, stack.pointer);
    }
    let mut registers = cpu::Registers { pc: loaded.entry, flags: 0x202, ..Default::default() };
    registers.general[4] = stack.pointer;
    let mut thread = Thread::new(block, registers);
    thread.set_tid(sys::gettid());
    let executable = std::fs::canonicalize(&program.path).unwrap_or(program.path);
    let engine = Engine::new(config, memory, executable, arguments);
    dispatch::start(engine, thread)
}

/// With a script, the interpreter's arguments stand in place of the script's own name.
fn apply_script(arguments: &mut Arguments, prepended: &[Vec<u8>]) {
    if !prepended.is_empty() {
        let rest = arguments.arguments.drain(..).skip(1).collect::<Vec<_>>();
        arguments.arguments = prepended.to_vec();
        arguments.arguments.extend(rest);
    }
}

fn cannot_load(path: &std::path::Path, error: LoadError) -> ! {
    let why = match error {
        LoadError::Occupied(address) => {
            format!("wants address {address:#x}, which the engine uses")
        }
        LoadError::Kernel(number) => {
            format!("cannot be mapped: {}", std::io::Error::from_raw_os_error(number))
        }
        LoadError::Open(error) => format!("cannot be opened: {error}"),
    };
    die(&format!("{} {why}", path.display()))
}

fn check_processor() {
    use std::arch::is_x86_feature_detected as has;
    // SAFETY: reads the auxiliary vector.
    let fsgsbase = unsafe { libc::getauxval(libc::AT_HWCAP2) } & 2 != 0;
    if !(fsgsbase && has!("avx2") && has!("bmi2")) {
        die("this processor or kernel lacks FSGSBASE, AVX2 or BMI2, which the engine needs");
    }
}

/// The kernel kills this process when the last write end of the pipe, the host's, goes away.
pub fn follow_host(Config { lifeline, proc, .. }: &Config) {
    const F_SETSIG: i32 = 10;
    if *lifeline < 0 {
        return;
    }
    // Each process needs a file description of its own: the signal goes to that one's owner.
    let (folder, path) = match proc {
        0.. => (*proc, format!("self/fd/{lifeline}\0")),
        _ => (libc::AT_FDCWD, format!("/proc/self/fd/{lifeline}\0")),
    };
    // SAFETY: descriptor calls on descriptors of ours.
    unsafe {
        let own = syscall!(
            libc::SYS_openat,
            i64::from(folder),
            path.as_ptr(),
            libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC
        );
        if own < 0 {
            return;
        }
        // In the child of a fork this takes the place of the parent's.
        let high = sys::with_lifted_limit(|| {
            syscall!(libc::SYS_dup3, own, files::LIFELINE, libc::O_CLOEXEC)
        });
        syscall!(libc::SYS_close, own);
        syscall!(libc::SYS_fcntl, high, F_SETSIG, libc::SIGKILL);
        syscall!(libc::SYS_fcntl, high, libc::F_SETOWN, sys::getpid());
        syscall!(libc::SYS_fcntl, high, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK);
        // A host that ended before this was armed (during an execve, say) sends nothing any more.
        let mut asked = libc::pollfd { fd: high as i32, events: 0, revents: 0 };
        syscall!(libc::SYS_poll, &raw mut asked, 1, 0);
        if asked.revents & libc::POLLHUP != 0 {
            syscall!(libc::SYS_kill, sys::getpid(), libc::SIGKILL);
        }
    }
}

/// As much as a stack without limit gets.
const LARGEST_STACK: u64 = 1 << 40;
/// The kernel keeps the stack that far away from other mappings.
const STACK_GUARD: u64 = 1 << 20;

/// The main stack stays where the kernel put it; the guest takes it over.
fn reserve_stack(memory: &mut Memory) {
    let mut limit = [0u64; 2];
    // SAFETY: the kernel writes two words.
    unsafe { syscall!(libc::SYS_getrlimit, libc::RLIMIT_STACK, limit.as_mut_ptr()) };
    let size = limit[0].min(LARGEST_STACK) & !0xfff;
    memory.stack_room = size + STACK_GUARD;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    if STACK_IS_ELSEWHERE.load(Ordering::Relaxed) {
        place_stack(size, protection);
    }
    memory.insert(
        layout::USER_END - size..layout::USER_END,
        Mapping { protection, ..Mapping::default() },
    );
}

/// Makes a stack where the guest's must be; the kernel's goes, of which everything is copied.
fn place_stack(size: u64, protection: i32) {
    unmap("[stack]");
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    // SAFETY: nothing is there: of this program only the stack, the vdso and what is below 2 GiB have places of
    // the kernel's choice, and the first two are gone.
    let placed = unsafe { sys::map_fixed(layout::USER_END - size, size, protection, flags, -1, 0) };
    if let Err(error) = placed {
        die(&format!("no stack where the guest's must be: error {error}"));
    }
}

/// System calls that never reach the kernel could not be seen: the vdso goes.
fn hide_vdso() {
    ["[vdso]", "[vvar"].into_iter().for_each(unmap);
}

/// Unmaps what the kernel calls so.
fn unmap(name: &str) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines().filter(|line| line.contains(name)) {
        let Some((range, _)) = line.split_once(' ') else { continue };
        let Some((start, end)) = range.split_once('-') else { continue };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16))
        else {
            continue;
        };
        // SAFETY: nothing in the runner calls into the vdso: it makes raw system calls.
        unsafe { syscall!(libc::SYS_munmap, start, end - start) };
    }
}

fn name_process(path: &std::path::Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned() + "\0";
    // SAFETY: the kernel reads at most sixteen bytes of a terminated string.
    unsafe { syscall!(libc::SYS_prctl, libc::PR_SET_NAME, name.as_ptr()) };
}

/// The kernel's `struct prctl_mm_map`.
#[repr(C)]
#[derive(Default)]
struct KernelMap {
    code: [u64; 2],
    data: [u64; 2],
    heap: [u64; 2],
    stack: u64,
    arguments: [u64; 2],
    environment: [u64; 2],
    auxiliary: u64,
    auxiliary_bytes: u32,
    executable: u32,
}

/// Lets others see the guest's arguments and environment in `/proc/PID`, where `ps` looks.
/// Without the kernel's consent they see the runner's, and nothing else is lost.
fn show_in_proc(stack: &InitialStack, arguments: &Arguments) {
    const PR_SET_MM_MAP: i32 = 14;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let numbers: Vec<u64> =
        after_name.split_whitespace().map(|word| word.parse().unwrap_or_default()).collect();
    // Numbered as in proc(5); the first after the name is 3.
    let field = |number: usize| numbers.get(number - 3).copied().unwrap_or_default();
    let words: Vec<u64> =
        arguments.auxiliary.iter().flat_map(|(kind, value)| [*kind, *value]).collect();
    let map = KernelMap {
        code: [field(26), field(27)],
        data: [field(45), field(46)],
        heap: [field(47), field(47)],
        stack: stack.pointer,
        arguments: [stack.arguments.start, stack.arguments.end],
        environment: [stack.environment.start, stack.environment.end],
        auxiliary: words.as_ptr() as u64,
        auxiliary_bytes: words.len() as u32 * 8,
        executable: u32::MAX,
    };
    let size = size_of::<KernelMap>();
    // SAFETY: the kernel reads the map and the vector, and notes them for others to read.
    unsafe { syscall!(libc::SYS_prctl, libc::PR_SET_MM, PR_SET_MM_MAP, &raw const map, size, 0) };
}

/// Stops, and when continued jumps to the guest with a clean state: the reference for tests.
fn run_natively(entry: u64, stack: u64) -> ! {
    // SAFETY: the guest was loaded; nothing of the runner is needed any more.
    unsafe {
        syscall!(libc::SYS_kill, sys::getpid(), libc::SIGSTOP);
        std::arch::asm!(
            "xor ebx, ebx",
            "wrfsbase rbx",
            "mov rsp, r14",
            "push r15",
            "push 0x202",
            "popfq",
            "xor eax, eax",
            "xor ecx, ecx",
            "xor edx, edx",
            "xor esi, esi",
            "xor edi, edi",
            "xor ebp, ebp",
            "xor r8d, r8d",
            "xor r9d, r9d",
            "xor r10d, r10d",
            "xor r11d, r11d",
            "xor r12d, r12d",
            "xor r13d, r13d",
            "xor r14d, r14d",
            "xor r15d, r15d",
            "ret",
            in("r14") stack,
            in("r15") entry,
            options(noreturn),
        )
    }
}
