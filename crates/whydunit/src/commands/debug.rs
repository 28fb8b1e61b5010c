//! `whydunit debug`: gdb on a recording, forwards and backwards.

use super::run::Guest;
use crate::exit::Exit;
use crate::render;
use anyhow::{Context, ensure};
use base::Moment;
use investigate::Case;
use investigate::debugging::{Debugger, image};
use nix::sys::signal::{SigSet, Signal};
use serve::gdb::{Client, Facts};
use std::fs::Permissions;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `whydunit debug`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit debug prog.whydunit                    gdb, at the crash if there was one
  whydunit debug --at list.c:29#3 prog.whydunit   gdb, at a moment
  whydunit debug -- ./prog input                  records the program first
  whydunit debug --batch --ex bt --ex reverse-stepi prog.whydunit
  whydunit debug --serve /tmp/s prog.whydunit     waits for `target remote /tmp/s` of any gdb or LLDB

Exit codes: 0 the debugger has been left; 2 wrong arguments or input; 70 a fault of our own. More in
docs/debug.md.")]
pub struct Debug {
    /// Where to begin: the crash, or without one the start
    #[arg(long, value_name = "MOMENT")]
    at: Option<Moment>,
    /// Which process, by its number in `whydunit info`; the one that failed, or the program, if not given
    #[arg(long, value_name = "N")]
    process: Option<u32>,
    /// Wait for a client at a socket in place of starting gdb: a path, or 127.0.0.1:PORT
    #[arg(long, value_name = "SOCKET")]
    serve: Option<String>,
    /// The gdb to start
    #[arg(long, value_name = "PROGRAM", default_value = "gdb")]
    gdb: PathBuf,
    /// Print our commands for a debugger that connects by itself: gdb's `source FILE` reads them, LLDB's `command
    /// script import FILE`
    #[arg(long, exclusive = true, value_name = "gdb|lldb", num_args = 0..=1, default_missing_value = "gdb")]
    script: Option<Front>,
    /// Commands for gdb, one after the other
    #[arg(long = "ex", value_name = "COMMAND")]
    commands: Vec<String>,
    /// Leave gdb after its commands
    #[arg(long)]
    batch: bool,
    #[command(flatten)]
    guest: Guest,
}

/// Debuggers that our commands can be had for.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Front {
    Gdb,
    Lldb,
}

impl Debug {
    /// Opens or records, and serves one client.
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(front) = self.script {
            let script = match front {
                Front::Gdb => serve::gdb::GDB_SCRIPT,
                Front::Lldb => serve::gdb::LLDB_SCRIPT,
            };
            print!("{script}");
            return Ok(Exit::Clean);
        }
        let case = Case::of(self.guest.job(), render::notices())?;
        let process = case.process(self.process)?;
        let moment = self.at.clone().unwrap_or_else(|| case.first_moment(process));
        let debugger = Debugger::at(&case, process, &moment)?;
        let auxv = image::auxiliary_vector(&case, process)?;
        let program = image::program_file(&case, debugger.modules(), &auxv)?;
        let facts = Facts { auxv, program: program.to_string_lossy().into_owned() };
        match &self.serve {
            Some(place) => serve::gdb::serve(debugger, facts, listen(place)?)?,
            None => self.with_gdb(debugger, facts, &program)?,
        }
        Ok(Exit::Clean)
    }

    fn with_gdb(&self, debugger: Debugger<'_>, facts: Facts, program: &Path) -> anyhow::Result<()> {
        let folder = tempfile::tempdir().context("no folder for a socket")?;
        let socket = folder.path().join("gdb");
        let script = folder.path().join("commands.py");
        std::fs::write(&script, serve::gdb::GDB_SCRIPT).context("no room for gdb's commands")?;
        let listener = UnixListener::bind(&socket).context("no socket for gdb")?;
        // Ctrl-C is for gdb, which tells us.
        let mut interrupts = SigSet::empty();
        interrupts.add(Signal::SIGINT);
        interrupts.thread_block().context("Ctrl-C cannot be left to gdb")?;
        let mut command = Command::new(&self.gdb);
        command.args(["-q", "-ex", "set confirm off", "-ex", "set sysroot /"]);
        command.arg("-ex").arg(format!("file {}", program.display()));
        command.arg("-ex").arg(format!("target remote {}", socket.display()));
        command.arg("-ex").arg(format!("source {}", script.display()));
        for wanted in &self.commands {
            command.arg("-ex").arg(wanted);
        }
        if self.batch {
            command.arg("-batch");
        }
        let started = command.spawn().with_context(|| {
            format!(
                "{} cannot be started; install it (on Debian: apt-get install gdb), name another with \
                 --gdb, or wait for a client with --serve",
                self.gdb.display()
            )
        });
        let mut gdb = started?;
        // A gdb that never connects has said why and ends.
        listener.set_nonblocking(true)?;
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break Some(stream),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if gdb.try_wait()?.is_some() {
                        break None;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                Err(error) => return Err(error).context("gdb's socket"),
            }
        };
        if let Some(stream) = stream {
            stream.set_nonblocking(false)?;
            serve::gdb::serve(debugger, facts, Client::new(stream))?;
        }
        gdb.wait().context("gdb's end")?;
        Ok(())
    }
}

/// Waits for one client.
fn listen(place: &str) -> anyhow::Result<Client> {
    if let Ok(address) = place.parse::<SocketAddr>() {
        ensure!(address.ip().is_loopback(), "{place} is not this machine; say 127.0.0.1:PORT");
        let listener =
            TcpListener::bind(address).with_context(|| format!("{place} cannot be had"))?;
        eprintln!("whydunit: waiting for `target remote {}`", listener.local_addr()?);
        let stream = listener.accept()?.0;
        stream.set_nodelay(true)?;
        return Ok(Client::new(stream));
    }
    let listener =
        UnixListener::bind(place).with_context(|| format!("{place} cannot be made a socket"))?;
    std::fs::set_permissions(place, Permissions::from_mode(0o600))?;
    eprintln!("whydunit: waiting for `target remote {place}`");
    let accepted = listener.accept();
    // Whatever came, nobody else connects.
    let _ = std::fs::remove_file(place);
    Ok(Client::new(accepted?.0))
}
