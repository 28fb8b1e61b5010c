//! How a runner is started: what it is handed, and what the host keeps of it. It is the same for a guest that is
//! run, a replay, and a replay that is asked for moments.

use super::RunError;
use super::supervise::Inherited;
use crate::config::{Config, VARIABLE};
use crate::runner::start;
use crate::sys;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A runner that has not been started yet.
pub struct Launch {
    /// What it is told.
    pub config: Config,
    messages: OwnedFd,
    lifeline: OwnedFd,
    handed: Vec<OwnedFd>,
}

/// One that has.
pub struct Launched {
    /// The process.
    pub child: Child,
    /// What it says.
    pub messages: OwnedFd,
    /// As long as this is open the runner lives.
    pub lifeline: OwnedFd,
}

impl Launch {
    /// Makes the pipes between host and runner, and notes them in the configuration.
    pub fn new(config: Config) -> Result<Self, RunError> {
        let (messages, channel) = pipe("make a pipe")?;
        let (watched, lifeline) = pipe("make a pipe")?;
        let mut launch = Self { config, messages, lifeline, handed: Vec::new() };
        launch.config.channel = launch.hand(&channel)?;
        launch.config.lifeline = launch.hand(&watched)?;
        Ok(launch)
    }

    /// Hands the runner a copy of a descriptor; the number that it has there.
    pub fn hand(&mut self, descriptor: &impl AsRawFd) -> Result<RawFd, RunError> {
        let copy = high(descriptor)?;
        let number = copy.as_raw_fd();
        self.handed.push(copy);
        Ok(number)
    }

    /// Starts it, as a program of this name; `also` are descriptors that keep their numbers.
    pub fn start(
        self,
        (program, arguments): (&OsStr, &[OsString]),
        also: impl IntoIterator<Item = RawFd>,
        inherited: Inherited,
    ) -> Result<Launched, RunError> {
        let config = config_file(&self.config)?;
        let handed = self.handed.iter().chain([&config]).map(AsRawFd::as_raw_fd);
        let keep: Vec<RawFd> = handed.chain(also).collect();
        let image = Image::of(program, arguments, config.as_raw_fd(), inherited);
        let mut command = Command::new("/proc/self/exe");
        // SAFETY: the closure only makes async-signal-safe calls.
        unsafe { command.pre_exec(move || Err(image.execute(&keep))) };
        let child = command.spawn().map_err(|error| RunError::System("start the runner", error))?;
        Ok(Launched { child, messages: self.messages, lifeline: self.lifeline })
    }
}

pub fn pipe(what: &'static str) -> Result<(OwnedFd, OwnedFd), RunError> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(RunError::System(what, io::Error::last_os_error()));
    }
    // SAFETY: both were just made and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// A copy of a descriptor above those that guests use.
pub fn high(descriptor: &impl AsRawFd) -> Result<OwnedFd, RunError> {
    let copy = sys::duplicate_high(descriptor.as_raw_fd(), true);
    if copy < 0 {
        let error = io::Error::from_raw_os_error(-copy as i32);
        return Err(RunError::System("use descriptor 1000 (see `ulimit -Hn`)", error));
    }
    // SAFETY: it was just made.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as i32) })
}

pub fn anonymous_file() -> Result<File, RunError> {
    // SAFETY: a terminated name.
    let descriptor = unsafe { libc::memfd_create(c"whydunit".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        let error = io::Error::last_os_error();
        return Err(RunError::System("make an anonymous file", error));
    }
    // SAFETY: it was just made.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

pub fn config_file(config: &Config) -> Result<OwnedFd, RunError> {
    let failed = |error| RunError::System("make an anonymous file", error);
    let mut file = anonymous_file()?;
    let text = serde_json::to_vec(config).map_err(|error| failed(error.into()))?;
    file.write_all(&text).map_err(failed)?;
    file.rewind().map_err(failed)?;
    high(&file)
}

/// Arguments and environment, ready for the kernel and in the order the guest would have them
/// natively: `Command` sorts variables.
pub struct Image {
    // The strings that the pointers lead to.
    _texts: Vec<CString>,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    ignore_pipe: bool,
    /// Standard descriptors that were closed when this tool started.
    closed: Vec<RawFd>,
    inherited: Inherited,
}

// SAFETY: the pointers lead to the strings that move along with them.
unsafe impl Send for Image {}
// SAFETY: nothing is changed through a shared reference.
unsafe impl Sync for Image {}

impl Image {
    pub fn of(
        program: &OsStr,
        arguments: &[OsString],
        config: RawFd,
        inherited: Inherited,
    ) -> Self {
        let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        let arguments: Vec<CString> = [program]
            .into_iter()
            .chain(arguments.iter().map(OsString::as_os_str))
            .map(|word| text(word.as_bytes()))
            .collect();
        let environment: Vec<CString> = std::env::vars_os()
            .map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
            .chain([text(format!("{VARIABLE}={config}").as_bytes())])
            .collect();
        let pointers = |texts: &[CString]| {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argument_pointers, environment_pointers) =
            (pointers(&arguments), pointers(&environment));
        Self {
            _texts: arguments.into_iter().chain(environment).collect(),
            arguments: argument_pointers,
            environment: environment_pointers,
            ignore_pipe: start::inherited_ignored_pipe(),
            closed: start::inherited_closed().collect(),
            inherited,
        }
    }

    /// Becomes the runner. Only makes async-signal-safe calls; comes back only if it fails.
    pub fn execute(&self, keep: &[RawFd]) -> io::Error {
        for descriptor in keep {
            // SAFETY: changes a flag of a descriptor.
            unsafe { libc::fcntl(*descriptor, libc::F_SETFD, 0) };
        }
        for descriptor in &self.closed {
            // SAFETY: closes what was closed for this tool too.
            unsafe { libc::close(*descriptor) };
        }
        let disposition = if self.ignore_pipe { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: the guest starts with what this tool was started with; both vectors end with a
        // null pointer and their strings are alive.
        unsafe {
            libc::signal(libc::SIGPIPE, disposition);
            self.inherited.restore();
            let before = libc::personality(0xffff_ffff);
            libc::personality((before | libc::ADDR_NO_RANDOMIZE) as _);
            libc::execve(
                c"/proc/self/exe".as_ptr(),
                self.arguments.as_ptr(),
                self.environment.as_ptr(),
            );
        }
        io::Error::last_os_error()
    }
}
