//! Rules that are switched on and off while a program runs: a file that is looked at whenever events
//! come. A line `-RULE` switches a rule off, `+RULE` on again.

use analyze::rules::detector::Detector;
use std::path::PathBuf;
use std::time::SystemTime;

/// The file, and when it was last read.
#[derive(Clone)]
pub struct Switch {
    path: PathBuf,
    read: Option<SystemTime>,
}

impl Switch {
    /// A file that need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: None }
    }

    /// Does what the file says, if it has changed. Rules that are not checked are passed over.
    pub fn apply(&mut self, detector: &mut Detector) {
        let Ok(changed) = std::fs::metadata(&self.path).and_then(|file| file.modified()) else {
            return;
        };
        if self.read == Some(changed) {
            return;
        }
        self.read = Some(changed);
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        for line in text.lines().map(str::trim) {
            let (on, rule) = match (line.strip_prefix('+'), line.strip_prefix('-')) {
                (Some(rule), _) => (true, rule),
                (_, Some(rule)) => (false, rule),
                _ => continue,
            };
            detector.enable(&rule.trim().replace('_', "-"), on);
        }
    }
}
