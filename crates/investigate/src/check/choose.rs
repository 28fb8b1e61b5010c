//! Which rules are checked: shipped ones by name, users' own by file.

use super::switch::Switch;
use analyze::rules::language;
use analyze::rules::model::Rule;
use analyze::rules::needs::Needs;
use analyze::rules::shipped;
use analyze::rules::suppress::{self, Suppression};
use anyhow::{Context, bail};
use base::allocator::Allocators;
use spec::Source;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a user says about rules, in words and names of files.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// `none`, `all`, names of shipped files or rules, or files of the user's own; [`DEFAULT`] if nobody says.
    pub rules: Option<Vec<String>>,
    /// Which function a rule means by a name: `NAME=FUNCTION`.
    pub names: Vec<String>,
    /// A file with allocators of the program's own.
    pub allocators: Option<PathBuf>,
    /// Files with findings not to show; `none` leaves out those that come with the tool.
    pub suppressions: Vec<PathBuf>,
    /// Whether the program is ended at the first finding.
    pub first_only: bool,
    /// A file that switches rules off and on while the program runs.
    pub switch: Option<PathBuf>,
    /// Whether errors in rule files may be shown in colour.
    pub colour: bool,
}

/// What was chosen.
#[derive(Clone)]
pub struct Chosen {
    /// The rules; none means that nothing is checked.
    pub rules: Vec<Rule>,
    /// Functions that allocate and free.
    pub allocators: Allocators,
    /// Findings not to show.
    pub suppressions: Vec<Suppression>,
    /// Whether the program is ended at the first finding.
    pub first_only: bool,
    /// What switches rules off and on.
    pub switch: Option<Switch>,
    /// Functions that the user means to be in the program.
    pub functions: BTreeSet<String>,
}

impl Chosen {
    /// What to say of functions that the user means and that nobody has found among these.
    pub fn missing(&self, found: &BTreeSet<String>) -> Vec<String> {
        let rules = |name: &str| {
            let names = |rule: &&Rule| Needs::of(rule).functions.contains(name);
            let all: Vec<&str> =
                self.rules.iter().filter(names).map(|rule| rule.name.as_str()).collect();
            all.join(", ")
        };
        let missing = self.functions.iter().filter(|name| !found.contains(*name));
        let sentence = |name: &String| {
            format!(
                "no function is called `{name}` in the program or its libraries, so this was not checked: {}; \
                 `--as` says which function a rule means",
                rules(name)
            )
        };
        missing.map(sentence).collect()
    }
}

/// Functions of the C library that shipped rules name.
const LIBRARY: [&str; 1] = ["memcpy"];

/// The rules that are checked where nobody says which: what memcheck and AddressSanitizer report together.
pub const DEFAULT: [&str; 4] = ["memory", "uninitialised", "regions", "allocation"];

impl Choice {
    /// Whether nobody says which rules are checked.
    pub fn is_default(&self) -> bool {
        self.rules.is_none()
    }

    /// Reads what is named.
    pub fn read(&self) -> anyhow::Result<Chosen> {
        let mut rules: Vec<Rule> = Vec::new();
        let words = self.rules.as_deref().unwrap_or_default().iter().map(String::as_str);
        let mut functions = BTreeSet::new();
        for word in words.chain(DEFAULT.into_iter().filter(|_| self.is_default())) {
            for rule in self.named(word)? {
                // Whoever names a rule, or wrote it, means its functions.
                if word.ends_with(".rule") || rule.name == word.replace('_', "-") {
                    functions.extend(Needs::of(&rule).functions);
                }
                if rules.iter().all(|known| known.name != rule.name) {
                    rules.push(rule);
                }
            }
        }
        let mut allocators = Allocators::default();
        if let Some(path) = &self.allocators {
            let read = allocators.read(&text(path)?);
            read.map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))?;
        }
        let mut suppressions = Vec::new();
        let is_none = |path: &&PathBuf| path.as_os_str() == "none";
        if !self.suppressions.iter().any(|path| is_none(&path)) {
            suppressions.extend(suppress::shipped());
        }
        for path in self.suppressions.iter().filter(|path| !is_none(path)) {
            let read = suppress::read(&text(path)?);
            suppressions.extend(read.map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))?);
        }
        functions.extend(self.renamed(&rules)?);
        // Which of its copies of a function of its own a library uses is not looked at.
        functions.retain(|name| !LIBRARY.contains(&name.as_str()));
        let switch = self.switch.clone().map(Switch::new);
        let first_only = self.first_only;
        Ok(Chosen { rules, allocators, suppressions, first_only, switch, functions })
    }

    /// The functions that names stand for, each of which a rule has to use.
    fn renamed(&self, rules: &[Rule]) -> anyhow::Result<Vec<String>> {
        let mut functions = Vec::new();
        for (_, to) in self.names.iter().filter_map(|pair| pair.split_once('=')) {
            let used = rules.iter().any(|rule| Needs::of(rule).functions.contains(to));
            anyhow::ensure!(
                used || rules.is_empty(),
                "`--as …={to}` changes none of the rules that are checked; `--rules` chooses them, as in \
                 `--rules leak-in-transaction --as transaction={to}`"
            );
            functions.push(to.to_owned());
        }
        Ok(functions)
    }

    /// The rules that one word means.
    fn named(&self, word: &str) -> anyhow::Result<Vec<Rule>> {
        if word == "none" {
            return Ok(Vec::new());
        }
        if word.ends_with(".rule") {
            return self.rules_of(word, &text(Path::new(word))?);
        }
        let shipped = |name: &str| word == "all" || name.strip_suffix(".rule") == Some(word);
        let mut found = Vec::new();
        for (name, text) in shipped::FILES.iter().filter(|(name, _)| shipped(name)) {
            found.extend(self.rules_of(name, text)?);
        }
        if found.is_empty() {
            let plain = word.replace('_', "-");
            for (name, text) in shipped::FILES {
                let rules = self.rules_of(name, text)?.into_iter();
                found.extend(rules.filter(|rule| rule.name == plain));
            }
        }
        if found.is_empty() {
            bail!(unknown(word));
        }
        Ok(found)
    }

    /// Reads a rule file, with functions called as the user says.
    fn rules_of(&self, name: &str, text: &str) -> anyhow::Result<Vec<Rule>> {
        let mut source = text.to_owned();
        for pair in &self.names {
            let Some((from, to)) = pair.split_once('=') else {
                bail!("`--as {pair}` should be NAME=FUNCTION, as in transaction=handle_request");
            };
            source = renamed(&source, from, to);
        }
        let source = Source::new(name, source);
        language::read(&source).map_err(|errors| {
            let rendered = errors.render(&source, self.colour);
            anyhow::anyhow!("these rules cannot be used\n\n{}", rendered.trim_end())
        })
    }
}

fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unknown(word: &str) -> String {
    let files = shipped::FILES.iter().filter_map(|(name, _)| name.strip_suffix(".rule"));
    let rules: Vec<String> = shipped::rules().into_iter().map(|rule| rule.name).collect();
    let known: Vec<&str> = files.chain(rules.iter().map(String::as_str)).collect();
    match symbols::suggest::near(word, known.iter().copied()).first() {
        Some(near) => format!("no rules are called `{word}`; did you mean `{near}`?"),
        None => format!(
            "no rules are called `{word}`; give a file that ends in .rule, or some of: all, {}",
            known.join(", ")
        ),
    }
}

/// Replaces a whole word.
fn renamed(text: &str, from: &str, to: &str) -> String {
    let part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from).filter(|_| !from.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        out.push_str(before);
        let whole = !out.ends_with(part) && !after.starts_with(part);
        out.push_str(if whole { to } else { from });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_renamed() {
        assert_eq!(renamed("gc gcc (gc) _gc", "gc", "collect"), "collect gcc (collect) _gc");
    }

    #[test]
    fn functions_that_the_user_means_have_to_be_there() {
        let choice = |rules: &str, names: &[&str]| Choice {
            rules: Some(vec![rules.to_owned()]),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Choice::default()
        };
        let missing = |choice: &Choice, found: &[&str]| {
            let found = found.iter().map(|name| (*name).to_owned()).collect();
            choice.read().expect("sound").missing(&found)
        };
        let named = choice("leak-in-transaction", &["transaction=handle"]);
        assert_eq!(missing(&named, &["handle"]), [""; 0]);
        assert!(missing(&named, &["other"])[0].contains("no function is called `handle`"));
        assert_eq!(missing(&choice("leak-in-transaction", &[]), &[]).len(), 1);
        assert_eq!(missing(&choice("all", &[]), &[]), [""; 0], "nobody means one");
        let error = choice("memory", &["transaction=handle"]).read().err().expect("unused");
        assert!(error.to_string().contains("changes none of the rules"), "{error}");
    }

    #[test]
    fn rules_are_found_by_file_and_by_name() {
        assert_eq!(Choice::default().named("double_free").expect("shipped").len(), 1);
        assert_eq!(Choice::default().named("memory").expect("shipped").len(), 6);
        assert!(Choice::default().named("all").expect("shipped").len() > 15);
        let error = Choice::default().named("double-fre").expect_err("unknown").to_string();
        assert!(error.contains("did you mean `double-free`?"), "{error}");
    }
}
