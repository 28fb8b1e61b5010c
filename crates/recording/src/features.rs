//! What the processor must be able to do. A recording holds results of the instructions that its
//! programs chose for the processor of that day; a replay executes the same instructions.

use crate::meta::Meta;
use std::fmt;

/// The features that the recording needs and the machine does not have, in the recording's order.
pub fn missing_features(meta: &Meta, available: &[impl AsRef<str>]) -> Vec<String> {
    let is_missing = |needed: &&String| !available.iter().any(|one| one.as_ref() == *needed);
    meta.features.iter().filter(is_missing).cloned().collect()
}

/// Refuses a recording that this processor cannot replay.
pub fn check_features(meta: &Meta, available: &[impl AsRef<str>]) -> Result<(), MissingFeatures> {
    let missing = missing_features(meta, available);
    if missing.is_empty() {
        return Ok(());
    }
    Err(MissingFeatures { missing, recorded_on: meta.processor.clone() })
}

/// The processor lacks something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFeatures {
    /// What.
    pub missing: Vec<String>,
    /// The processor that the recording was made on.
    pub recorded_on: String,
}

impl fmt::Display for MissingFeatures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the recording needs a processor with {}", self.missing.join(", "))?;
        if !self.recorded_on.is_empty() {
            write!(out, ", as the one it was made on ({})", self.recorded_on)?;
        }
        write!(out, "; this one does not have it, so it cannot be replayed here")
    }
}

impl std::error::Error for MissingFeatures {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let features = ["sse2", "avx2", "bmi2"].map(str::to_owned).to_vec();
        let meta = Meta { features, processor: "Maker X".into(), ..Meta::default() };
        assert_eq!(missing_features(&meta, &["sse2", "bmi2", "avx2", "fma"]), [""; 0]);
        assert_eq!(missing_features(&meta, &["sse2", "fma"]), ["avx2", "bmi2"]);
        let refused = check_features(&meta, &["sse2"]).expect_err("refused").to_string();
        assert!(refused.contains("avx2, bmi2") && refused.contains("Maker X"), "{refused}");
    }
}
