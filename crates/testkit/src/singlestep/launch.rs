//! Starting a program so that its first instruction has yet to run.
//!
//! Tracing oneself before exec needs code between fork and exec, which safe Rust does not offer.
//! So a shell stops itself and is attached to; when it continues it becomes `env`, and `env`
//! becomes the program, with exactly our environment (the shell alone would add to it). The
//! second exec is where the program starts. Address randomisation is off.

use anyhow::{Context, bail, ensure};
use nix::sys::personality::{self, Persona};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

const SHELL: &str = "kill -STOP $$; exec /usr/bin/env -i \"$@\"";

/// Starts `command`, stopped before its first instruction.
pub fn launch(command: &[OsString], output: Stdio) -> anyhow::Result<Pid> {
    let program = command.first().context("no command was given")?;
    ensure!(
        !program.as_bytes().contains(&b'='),
        "the program's name must not contain '=': env would take it for a variable"
    );
    let before = personality::get()?;
    personality::set(before | Persona::ADDR_NO_RANDOMIZE)?;
    let child = Command::new("/bin/sh")
        .args(["-c", SHELL, "sh"])
        .args(std::env::vars_os().map(|(name, value)| assignment(&name, &value)))
        .args(command)
        .stdout(output)
        .spawn();
    personality::set(before)?;
    let pid = Pid::from_raw(child.context("starting /bin/sh")?.id().cast_signed());
    match waitpid(pid, Some(WaitPidFlag::WUNTRACED))? {
        WaitStatus::Stopped(..) => {}
        other => bail!("the shell that starts the program did not stop: {other:?}"),
    }
    ptrace::attach(pid).context("attaching with ptrace")?;
    waitpid(pid, None)?;
    ptrace::setoptions(pid, Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL)?;
    nix::sys::signal::kill(pid, Signal::SIGCONT)?;
    run_to_exec(pid)?;
    run_to_exec(pid).with_context(|| format!("cannot run {}", program.display()))?;
    ptrace::setoptions(pid, Options::PTRACE_O_EXITKILL)?;
    Ok(pid)
}

fn assignment(name: &OsStr, value: &OsStr) -> OsString {
    let mut word = name.to_os_string();
    word.push("=");
    word.push(value);
    word
}

fn run_to_exec(pid: Pid) -> anyhow::Result<()> {
    loop {
        ptrace::cont(pid, None)?;
        match waitpid(pid, None)? {
            WaitStatus::PtraceEvent(..) => return Ok(()),
            WaitStatus::Stopped(..) => {}
            other => bail!("it ended before it began: {other:?}"),
        }
    }
}
