//! gdb's remote protocol: a recording looks to gdb (and to LLDB's `gdb-remote`) like a stopped process that
//! can also go backwards.
//!
//! What is written leaves the recording: the next movement forwards is a diversion, and going backwards throws it away.
//! Commands of our own are `monitor` commands; scripts that come with us ([`GDB_SCRIPT`], [`LLDB_SCRIPT`]) make ordinary ones of them.

mod connection;
mod registers;
mod session;
mod signals;
mod stops;

use gdbstub::stub::{DisconnectReason, GdbStub};
use investigate::debugging::Debugger;
use session::{Loop, Session};

/// What gdb is to read: our commands as commands of its own, with help and completion.
pub const GDB_SCRIPT: &str = include_str!("gdb/commands_gdb.py");

/// The same for LLDB.
pub const LLDB_SCRIPT: &str = include_str!("gdb/commands_lldb.py");

pub use connection::{Client, Socket};

/// What gdb is told of the process before anything else.
pub struct Facts {
    /// Its auxiliary vector: with it gdb finds libraries and relocates the program.
    pub auxv: Vec<u8>,
    /// The file of the program.
    pub program: String,
}

/// Serves one client until it leaves.
pub fn serve(debugger: Debugger<'_>, facts: Facts, client: Client) -> anyhow::Result<()> {
    let mut session = Session::new(debugger, facts, client.told());
    let stub = GdbStub::new(client);
    match stub.run_blocking::<Loop<'_>>(&mut session) {
        Ok(
            DisconnectReason::Disconnect
            | DisconnectReason::Kill
            | DisconnectReason::TargetExited(_)
            | DisconnectReason::TargetTerminated(_),
        ) => Ok(()),
        // A client that has gone is no fault of anybody's.
        Err(error) if error.is_connection_error() => Ok(()),
        Err(error) if error.is_target_error() => {
            Err(error.into_target_error().unwrap_or_else(|| anyhow::anyhow!("the replay failed")))
        }
        Err(error) => Err(anyhow::anyhow!("gdb's protocol: {error}")),
    }
}
