//! The rules that come with the tool: the files of `rules/`, which can be read and copied.

use super::language;
use super::model::Rule;
use spec::Source;

/// A shipped file: its name without the folder, and its text.
pub type File = (&'static str, &'static str);

/// Every shipped file.
pub const FILES: [File; 8] = [
    ("memory.rule", include_str!("../../../../rules/memory.rule")),
    ("uninitialised.rule", include_str!("../../../../rules/uninitialised.rule")),
    ("allocation.rule", include_str!("../../../../rules/allocation.rule")),
    ("regions.rule", include_str!("../../../../rules/regions.rule")),
    ("leaks.rule", include_str!("../../../../rules/leaks.rule")),
    ("leftovers.rule", include_str!("../../../../rules/leftovers.rule")),
    ("descriptors.rule", include_str!("../../../../rules/descriptors.rule")),
    ("collector.rule", include_str!("../../../../rules/collector.rule")),
];

/// All shipped rules, in the order of [`FILES`].
#[must_use]
pub fn rules() -> Vec<Rule> {
    let read = |(name, text): &File| {
        // A test reads every file, so that this never happens to a user.
        language::read(&Source::new(*name, *text)).unwrap_or_default()
    };
    FILES.iter().flat_map(read).collect()
}
