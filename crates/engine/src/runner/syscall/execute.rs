//! `execve`: the runner executes itself with the new program to load, or lets a program go that it does not
//! follow.

use super::Outcome;
use super::files;
use super::process::set_personality;
use crate::config::{Children, Config, VARIABLE};
use crate::image::{self, Unusable};
use crate::runner::context::Context;
use crate::runner::engine::dispatch::{drop_baton, take_baton};
use crate::runner::engine::{Engine, note};
use crate::runner::{cpu, guest, procfs, record, signal};
use crate::sys::{self, syscall};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// `execve` and `execveat`: the runner executes itself, with the new program to load.
pub fn execve(
    context: &mut Context,
    (directory, path, flags): (i32, u64, i32),
    arguments: u64,
    environment: u64,
) -> Outcome {
    let engine = context.engine();
    let given = (|| {
        let path = full_path(engine, directory, guest::read_string(path)?, flags)?;
        Ok((path, guest::read_strings(arguments)?, guest::read_strings(environment)?))
    })();
    let (path, arguments, environment) = match given {
        Ok(given) => given,
        Err(error) => return Outcome::error(error),
    };
    let shown = PathBuf::from(OsString::from_vec(path.clone()));
    match image::resolve(&shown) {
        Ok(_) if engine.config.children == Children::Follow && is_traced_by_guest() => {
            note(&format!(
                "{} is started by a debugger or tracer: it runs natively, unobserved",
                shown.display()
            ));
            return execute_natively(context, &path, &arguments, &environment);
        }
        Ok(_) if engine.config.children == Children::Follow => {}
        Ok(_) => return execute_natively(context, &path, &arguments, &environment),
        Err(why @ (Unusable::Setuid | Unusable::WrongKind(_) | Unusable::Place(_))) => {
            note(&format!("{} {why}: this child runs natively, unobserved", shown.display()));
            return execute_natively(context, &path, &arguments, &environment);
        }
        Err(why) => return Outcome::error(error_number(&why)),
    }
    execute_followed(context, path, arguments, environment)
}

/// Executes the runner, which loads the program.
fn execute_followed(
    context: &mut Context,
    path: Vec<u8>,
    arguments: Vec<Vec<u8>>,
    mut environment: Vec<Vec<u8>>,
) -> Outcome {
    let engine = context.engine();
    let plan = engine.config.plan.for_another_program();
    let mut config = Config { program: path, plan, ..engine.config.clone() };
    if let Some(recording) = &mut config.recording {
        recording.executed = true;
    }
    let Some(descriptor) = write_config(&config) else { return Outcome::error(libc::ENOMEM) };
    environment.push(format!("{VARIABLE}={descriptor}").into_bytes());
    let arguments = if arguments.is_empty() { vec![Vec::new()] } else { arguments };
    let runner = engine.config.executable;
    let outcome = execute(context, Some(runner), b"", &arguments, &environment);
    // SAFETY: the descriptor is ours; the call failed.
    unsafe { syscall!(libc::SYS_close, descriptor) };
    files::keep_spare(&context.engine().config);
    outcome
}

fn full_path(engine: &Engine, directory: i32, path: Vec<u8>, flags: i32) -> Result<Vec<u8>, i32> {
    if path.is_empty() && flags & libc::AT_EMPTY_PATH == 0 {
        return Err(libc::ENOENT);
    }
    if path.is_empty() {
        return Ok(path_of_descriptor(directory));
    }
    if files::is_own_executable(&path) {
        return Ok(engine.process.executable.clone().into_os_string().into_vec());
    }
    if path[0] == b'/' || directory == libc::AT_FDCWD {
        return Ok(path);
    }
    let mut full = format!("/proc/self/fd/{directory}/").into_bytes();
    full.extend(path);
    Ok(full)
}

/// A path that still leads to an open file after `execve`, which may close the descriptor.
fn path_of_descriptor(descriptor: i32) -> Vec<u8> {
    let own = PathBuf::from(format!("/proc/thread-self/fd/{descriptor}"));
    let same = |path: &PathBuf| {
        use std::os::unix::fs::MetadataExt;
        let (Ok(one), Ok(other)) = (own.metadata(), path.metadata()) else { return false };
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    if let Some(path) = std::fs::read_link(&own).ok().filter(same) {
        return path.into_os_string().into_vec();
    }
    let high = sys::duplicate_high(descriptor, false);
    format!("/proc/self/fd/{high}").into_bytes()
}

fn error_number(why: &Unusable) -> i32 {
    match why {
        Unusable::Io(error) => error.raw_os_error().unwrap_or(libc::ENOEXEC),
        Unusable::EmptyPath => libc::ENOENT,
        Unusable::NotAFile(_) | Unusable::NotExecutable => libc::EACCES,
        Unusable::NotElf | Unusable::Truncated | Unusable::Malformed(_) => libc::ENOEXEC,
        // An interpreter of that kind; a program is run natively.
        Unusable::WrongKind(_) | Unusable::Place(_) | Unusable::Setuid => libc::ENOEXEC,
        Unusable::Interpreter(_, inner) => match error_number(inner) {
            libc::ENOEXEC => libc::ELIBBAD,
            other => other,
        },
        Unusable::TooManyInterpreters => libc::ELOOP,
    }
}

/// The configuration of the next runner, in an anonymous file that survives `execve`.
fn write_config(config: &Config) -> Option<i32> {
    let text = serde_json::to_vec(config).ok()?;
    // The guest may have used up all descriptors: one is kept for this.
    files::give_up_spare();
    // SAFETY: the kernel reads a terminated name.
    let low = unsafe { syscall!(libc::SYS_memfd_create, c"whydunit".as_ptr(), 0) };
    if low < 0 {
        return None;
    }
    // SAFETY: descriptor calls on a descriptor of ours.
    let high = unsafe {
        let high = sys::duplicate_high(low as i32, false);
        if high >= 0 {
            syscall!(libc::SYS_close, low);
            high
        } else {
            low
        }
    };
    sys::write_all(high as i32, &text);
    Some(high as i32)
}

/// Whether another guest traces this process: it would see the runner, and put its breakpoints
/// where no code runs.
pub fn is_traced_by_guest() -> bool {
    let status = procfs::text("status");
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    match tracer.map(str::trim) {
        None | Some("0") => false,
        Some(tracer) => files::is_runner(tracer.as_ref()),
    }
}

/// Lets a program go: it sees nothing of the engine.
fn execute_natively(
    context: &mut Context,
    path: &[u8],
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Outcome {
    let config = &context.engine().config;
    let persona = config.personality;
    files::hide_from_exec(config, true);
    set_personality(persona);
    let outcome = execute(context, None, path, arguments, environment);
    set_personality(persona | libc::ADDR_NO_RANDOMIZE as u32);
    files::hide_from_exec(&context.engine().config, false);
    outcome
}

/// Hands over to another program, by path or descriptor; only comes back if that fails.
fn execute(
    context: &mut Context,
    file: Option<i32>,
    path: &[u8],
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Outcome {
    let path = [path, b"\0"].concat();
    let (arguments, environment) = (Vector::of(arguments), Vector::of(environment));
    let (engine, thread) = context.parts();
    let mask = thread.signals.mask;
    let observed = engine.observed.ring.is_some() && !thread.foreign;
    if observed {
        engine.finish_events();
    }
    engine.threads.attached.leaves(thread);
    // Others may run on until the kernel ends them, as natively. Above all nobody must ask us for
    // the baton by a signal that the next program would die of.
    let shared = thread.foreign || !engine.threads.list.is_empty();
    record::executes(engine, thread);
    // While recording nobody asks for it like that, and nobody may run when the log has ended.
    let shared = shared && (thread.foreign || !engine.is_recorded());
    if shared {
        drop_baton(context);
    }
    let attention = context.shared().attention.as_ptr();
    let (directory, flags) = file.map_or((libc::AT_FDCWD, 0), |file| (file, libc::AT_EMPTY_PATH));
    let call = [
        directory as u64,
        path.as_ptr() as u64,
        arguments.pointers.as_ptr() as u64,
        environment.pointers.as_ptr() as u64,
        flags as u64,
        0,
    ];
    // The next program inherits the guest's mask, faults and all. A signal that came meanwhile would be
    // lost with this program: it is delivered first, and the call is made again.
    // SAFETY: the kernel only reads what it is given, all of which is alive.
    let answer = unsafe {
        syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, 8);
        cpu::guest_syscall(libc::SYS_execveat as u64, call, attention)
    };
    if shared {
        take_baton(context);
    }
    let (engine, thread) = context.parts();
    record::not_executed(engine, thread);
    if observed {
        engine.restart_events(None);
        engine.listen_as(thread.tid());
    }
    signal::apply(thread.signals.mask);
    Outcome::Answer(answer)
}

/// Texts as the kernel takes them.
struct Vector {
    /// What the pointers lead to.
    _texts: Vec<Vec<u8>>,
    pointers: Vec<*const u8>,
}

impl Vector {
    fn of(texts: &[Vec<u8>]) -> Self {
        let texts: Vec<Vec<u8>> =
            texts.iter().map(|text| [text.as_slice(), b"\0"].concat()).collect();
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _texts: texts, pointers }
    }
}
