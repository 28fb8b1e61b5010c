//! How far long work has come: a bar on a terminal, nothing in a pipe.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of so many steps.
pub struct Bar(ProgressBar);

impl Default for Bar {
    /// One whose steps are not known yet.
    fn default() -> Self {
        Self::of(2)
    }
}

impl Bar {
    /// Nothing has been done. One step alone needs no bar.
    pub fn of(steps: usize) -> Self {
        let bar = if steps > 1 { ProgressBar::new(steps as u64) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    /// So many steps of so many are done.
    pub fn at(&self, done: usize, all: usize, name: &str) {
        self.0.set_length(all as u64);
        self.0.set_message(name.to_owned());
        self.0.set_position(done as u64);
    }

    /// A step is done.
    pub fn step(&self, name: &str) {
        self.0.set_message(name.to_owned());
        self.0.inc(1);
    }

    /// All is done.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}
