//! The walk through a slice in a terminal, and the prompt of `whydunit step`, through a real pty.

mod support;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::{root, tool};

/// The longest that anything is waited for, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// The tool in a terminal of 80 by 24.
struct Terminal {
    keyboard: File,
    seen: Receiver<Vec<u8>>,
    text: String,
    slave: File,
    child: Child,
}

impl Terminal {
    fn run(arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pty");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("sized");
        let mut options = File::options();
        let slave = options.read(true).write(true).open(name.to_str().expect("plain"));
        let slave = slave.expect("the other end");
        let end = || Stdio::from(slave.try_clone().expect("a copy"));
        let child = tool(arguments)
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the tool");
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().expect("a copy");
        let (sender, seen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of a pty is an error.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { keyboard, seen, text: String::new(), slave, child }
    }

    /// Waits until a text has come since the last time.
    fn wait_for(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.text.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            match self.seen.recv_timeout(left) {
                Ok(bytes) => self.text += &String::from_utf8_lossy(&bytes),
                Err(_) => panic!("{text:?} never came; there is\n{}", self.text),
            }
        }
        let end = self.text.find(text).expect("just seen") + text.len();
        self.text.drain(..end);
    }

    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    fn ends_well(mut self) {
        let status = self.child.wait().expect("an end");
        assert_eq!(status.code(), Some(0), "{}", self.text);
        let modes = tcgetattr(&self.slave).expect("modes").local_modes;
        assert!(modes.contains(rustix::termios::LocalModes::ECHO), "the terminal is as it was");
    }
}

fn example(name: &str) -> String {
    let source = root().join("examples/bugs").join(format!("{name}.c"));
    let program = support::build_file(&source, &format!("pager-{name}"), &["-g", "-O0"]);
    program.to_str().expect("a plain name").to_owned()
}

#[test]
fn edges_are_followed_and_taken_back() {
    let program = example("null_from_error");
    let mut terminal = Terminal::run(&["slice", "--kind", "thin", "--", &program]);
    terminal.wait_for("what was asked");
    terminal.wait_for(">  1 the question <- null_from_error.c:53#");
    terminal.type_in("\r");
    terminal.wait_for("statement 1 of");
    terminal.wait_for(">    53      while (names[length])");
    terminal.wait_for("depends on");
    terminal.type_in("/return NULL\r");
    terminal.wait_for(">    40  ");
    terminal.type_in("b");
    terminal.wait_for("statement 1 of");
    terminal.type_in("l");
    terminal.wait_for(">    1 null_from_error.c:53");
    terminal.type_in("\x1b[B\r");
    terminal.wait_for("statement 2 of");
    terminal.type_in("/no such thing\r");
    terminal.wait_for("nothing has 'no such thing'");
    terminal.type_in("h");
    terminal.wait_for("more or less source");
    terminal.type_in("xq");
    terminal.ends_well();
}

#[test]
fn without_a_terminal_it_is_text() {
    let program = example("null_from_error");
    let mut terminal = Terminal::run(&["slice", "--kind", "thin", "--no-pager", "--", &program]);
    terminal.wait_for("because of");
    terminal.ends_well();
}

#[test]
fn a_prompt_asks_for_steps() {
    let program = example("stale_value");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("slice");
    let file = file.to_str().expect("a plain name");
    let saved = support::run(&["slice", "--kind", "thin", "--save", file, "--", &program]);
    assert!(saved.status.success(), "{}", support::errors(&saved));
    let mut terminal = Terminal::run(&["step", file]);
    terminal.wait_for("(step) ");
    terminal.type_in("next\n");
    terminal.wait_for("2/");
    terminal.wait_for("(step) ");
    terminal.type_in("\n");
    terminal.wait_for("3/");
    terminal.wait_for("(step) ");
    terminal.type_in("nonsense\n");
    terminal.wait_for("no command 'nonsense'");
    terminal.wait_for("(step) ");
    terminal.type_in("quit\n");
    terminal.ends_well();
}
