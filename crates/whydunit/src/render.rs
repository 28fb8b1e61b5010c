//! Where answers go: standard output, standard error or a file; what is said beside them; progress, and the
//! pager. What an answer looks like is the business of the crate `report`.

pub mod pager;
pub mod progress;

use anyhow::Context;
use investigate::Notices;
use report::style::Style;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Prints an error with its causes, prefixed like every message of the tool.
pub fn error(error: &anyhow::Error) {
    note(&format!("{error:#}"));
}

/// Sentences that come up while an investigation goes on are printed at once.
pub fn notices() -> Notices {
    Notices::to(note)
}

/// Prints one line about the run.
pub fn note(text: &str) {
    // Nobody is left to be told that standard error is gone.
    let line = fitted(&format!("whydunit: {text}"), &io::stderr());
    let _ = writeln!(io::stderr(), "{line}");
}

/// Where a report goes.
pub enum Output {
    /// To standard error, beside the guest's own messages.
    Error,
    /// To standard output.
    Standard,
    /// To standard output, for another program: what the guest writes there goes to standard error.
    Apart(File),
    /// To a file.
    File(PathBuf, File),
}

impl Output {
    /// A file if one is given; else JSON to standard output, alone, and text to standard error. To be
    /// called before the guest runs: nobody wants to hear after a long run that a file cannot be written.
    pub fn of(file: Option<&Path>, json: bool) -> anyhow::Result<Self> {
        Ok(match (file, json) {
            (Some(path), _) => Self::File(path.to_owned(), create(path)?),
            (None, true) => Self::Apart(apart().context("standard output")?),
            (None, false) => Self::Error,
        })
    }

    /// The same for a command whose text is what it was called for: that goes to standard output.
    pub fn answer(file: Option<&Path>, json: bool) -> anyhow::Result<Self> {
        Ok(match Self::of(file, json)? {
            Self::Error => Self::Standard,
            other => other,
        })
    }

    /// Whether colour may be used.
    pub fn style(&self) -> Style {
        match self {
            Self::File(..) | Self::Apart(_) => Style::PLAIN,
            Self::Standard => style_of(&io::stdout()),
            Self::Error => style_of(&io::stderr()),
        }
    }

    /// Writes a report; a reader that has gone away is no error.
    pub fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let written = match self {
            Self::Error => io::stderr().lock().write_all(fitted(text, &io::stderr()).as_bytes()),
            Self::Standard => print(&fitted(text, &io::stdout())),
            Self::Apart(stdout) => stdout.write_all(text.as_bytes()),
            Self::File(_, file) => file.write_all(text.as_bytes()),
        };
        match written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(error).with_context(|| format!("cannot write {}", self.name()))
            }
            _ => Ok(()),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Error => "to standard error".into(),
            Self::Standard | Self::Apart(_) => "to standard output".into(),
            Self::File(path, _) => path.display().to_string(),
        }
    }
}

/// Keeps standard output for a report: from here on everybody else's goes to standard error.
fn apart() -> io::Result<File> {
    let kept = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(kept))
}

/// Creates a file, or says which one could not be.
pub fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a report to standard output. A reader that has gone away is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// The text as wide as a terminal is; elsewhere as it is.
fn fitted(text: &str, stream: &(impl IsTerminal + AsFd)) -> String {
    match stream.is_terminal() {
        true => report::fit::page(text, style_of(stream).columns),
        false => text.to_owned(),
    }
}

/// How text is shown on a stream: in colour on a terminal, unless `NO_COLOR` is set, and as wide as that is.
pub fn style_of(stream: &(impl IsTerminal + AsFd)) -> Style {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let terminal = stream.is_terminal();
    let size = rustix::termios::tcgetwinsize(stream).ok().filter(|_| terminal);
    Style::of_terminal(terminal && !refused, size.map(|size| size.ws_col.into()))
}
