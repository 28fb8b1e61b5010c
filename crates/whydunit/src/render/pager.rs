//! A slice in the terminal, to be walked through: one statement at a time with its source, and the
//! edges that lead on from it.
//!
//! Parts: [`walk`] (where one is and what a key does; knows no terminal), [`keys`] (bytes of a
//! terminal as keys), `screen` (the terminal itself).

mod keys;
mod screen;
mod walk;

use analyze::slice::View;
use keys::Keys;
use std::io::{IsTerminal, Read};
use walk::{Size, Walk};

/// Whether there is a terminal to show it in.
pub fn is_possible() -> bool {
    let usable = std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty());
    usable && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Shows a slice until the reader has seen enough.
pub fn show(question: &str, view: &View) -> std::io::Result<()> {
    let mut screen = screen::Screen::open()?;
    let mut walk = Walk::new(question, view);
    let mut keys = Keys::default();
    let mut input = std::io::stdin().lock();
    loop {
        let (width, height) = screen.size();
        screen.show(&walk.lines(Size { width, height }))?;
        let mut bytes = [0; 64];
        let got = match input.read(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            got => got?,
        };
        if got == 0 {
            return Ok(());
        }
        for key in keys.take(&bytes[..got]) {
            if !walk.press(key) {
                return Ok(());
            }
        }
    }
}
