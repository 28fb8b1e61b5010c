//! The terminal: raw while the pager has it, as it was afterwards.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Stdin, Write};

/// The terminal, while it is ours.
pub struct Screen {
    input: Stdin,
    before: Termios,
}

const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

impl Screen {
    /// Takes the terminal.
    pub fn open() -> io::Result<Self> {
        let input = io::stdin();
        let before = tcgetattr(&input)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&input, OptionalActions::Flush, &raw)?;
        let screen = Self { input, before };
        io::stdout().write_all(ENTER)?;
        Ok(screen)
    }

    /// Columns and lines.
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => (80, 24),
        }
    }

    /// Shows lines, from the top on.
    pub fn show(&mut self, lines: &[String]) -> io::Result<()> {
        let mut out = Vec::from(&b"\x1b[H"[..]);
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                out.extend(b"\r\n");
            }
            out.extend(line.as_bytes());
            out.extend(b"\x1b[K");
        }
        out.extend(b"\x1b[J");
        let mut stdout = io::stdout().lock();
        stdout.write_all(&out)?;
        stdout.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may have gone away; then there is nothing to restore.
        let _ = io::stdout().write_all(LEAVE).and_then(|()| io::stdout().flush());
        let _ = tcsetattr(&self.input, OptionalActions::Flush, &self.before);
    }
}
