//! What this machine is, as far as a recording depends on it.

/// The processor, by `/proc/cpuinfo`.
pub struct Processor(String);

impl Processor {
    /// The one we run on.
    pub fn here() -> Self {
        Self(std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
    }

    /// Its name, in its maker's words.
    pub fn name(&self) -> &str {
        self.line("model name")
    }

    /// All that it can do.
    pub fn features(&self) -> Vec<&str> {
        self.line("flags").split(' ').collect()
    }

    /// What it can do that programs look for and the engine shows them: a replay needs those that
    /// the program has used, and which these are is not known.
    pub fn shown_features(&self) -> Vec<String> {
        let features = self.features().into_iter();
        features.filter(|feature| SHOWN.contains(feature)).map(str::to_owned).collect()
    }

    fn line(&self, name: &str) -> &str {
        let found = self.0.lines().find(|line| line.starts_with(name));
        found.and_then(|line| line.split_once(": ")).map_or("", |(_, value)| value)
    }
}

const SHOWN: [&str; 21] = [
    "fsgsbase",
    "avx",
    "avx2",
    "bmi1",
    "bmi2",
    "fma",
    "f16c",
    "aes",
    "vaes",
    "pclmulqdq",
    "vpclmulqdq",
    "sha_ni",
    "gfni",
    "movbe",
    "popcnt",
    "adx",
    "lzcnt",
    "abm",
    "sse4_2",
    "erms",
    "fsrm",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_cpuinfo_are_found() {
        let text = "processor\t: 0\nmodel name\t: Maker X\nflags\t\t: fpu avx2 avx512f bmi2\n";
        let processor = Processor(text.into());
        assert_eq!(processor.name(), "Maker X");
        assert_eq!(processor.features(), ["fpu", "avx2", "avx512f", "bmi2"]);
        assert_eq!(processor.shown_features(), ["avx2", "bmi2"]);
    }
}
