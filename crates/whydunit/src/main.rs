//! The command-line tool: arguments, wiring and rendering. No algorithm lives here.
//!
//! `commands/` has one file a subcommand; `render/` knows where answers go, and the pager; `exit.rs` holds the exit
//! codes that all of them share. What an answer looks like is the crate `report`.

#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod exit;
mod render;

use clap::{Command, CommandFactory, Parser};
use exit::Exit;
use std::process::ExitCode;

/// Tells why a native Linux program did what it did.
#[derive(Parser)]
#[command(name = "whydunit", version = env!("WHYDUNIT_VERSION"), arg_required_else_help = true, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

const AFTER_HELP: &str = "\
Examples:
  whydunit demo                      a crash, a wrong number and a hang of small programs of ours
  whydunit why -- ./prog arguments   run a program; explain how it ended
  whydunit run -- ./prog arguments   run a program; report memory bugs and crashes
  whydunit debug -- ./prog           look around in the run with gdb, forwards and backwards

Exit codes: 0 nothing found, 1 findings, 2 wrong arguments or unusable input, 3 not decided,
70 a fault of our own. `whydunit COMMAND --help` tells more of a command.";

const PANICKED: &str = "a fault of our own, not of the program; please report it with the command line and this message";

/// The whole command line.
fn command() -> Command {
    Arguments::command()
}

fn main() -> ExitCode {
    end_at_a_panic();
    let given = std::env::args_os().collect();
    let given = arguments::reordered(&command(), given, arguments::is_recording);
    let arguments = Arguments::parse_from(given);
    let exit = arguments.command.run().unwrap_or_else(|error| {
        render::error(&error);
        Exit::of_error(&error)
    });
    exit.into()
}

/// A panic, in whatever thread, is a fault of our own, and ends the tool as such: an answer that a part is missing from
/// is worse than none.
fn end_at_a_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        render::note(PANICKED);
        std::process::exit(Exit::OurFault.code().into());
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set where the test runs itself again.
    const AGAIN: &str = "WHYDUNIT_TEST_PANIC";

    #[test]
    fn a_panic_of_any_thread_is_a_fault_of_our_own() {
        if std::env::var_os(AGAIN).is_some() {
            end_at_a_panic();
            let _ = std::thread::spawn(|| panic!("on purpose")).join();
            return;
        }
        let own = std::env::current_exe().expect("this test");
        let name = "tests::a_panic_of_any_thread_is_a_fault_of_our_own";
        let output = Command::new(own).args(["--exact", name]).env(AGAIN, "1").output();
        let output = output.expect("run");
        assert_eq!(output.status.code(), Some(70), "{output:?}");
    }
}
