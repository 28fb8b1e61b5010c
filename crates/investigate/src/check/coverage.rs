//! What a check has looked at, and what it has not: silence is believed, so it has to say how far it reaches.

use super::screened::is_light;
use super::unwritten;
use analyze::rules::model::Rule;
use analyze::rules::needs::is_local;
use recording::ProcessStart;
use serde::Serialize;

/// How much of a process was followed in full, from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Followed {
    /// Its number in a recording.
    pub process: u32,
    /// The kernel's number for it.
    #[serde(skip)]
    pub pid: i32,
    /// Instructions that were followed, and ticks.
    pub instructions: u64,
    /// See above.
    pub ticks: u64,
    /// The tick up to which it was followed.
    #[serde(skip)]
    pub until: u64,
    /// Whether that was all of it.
    pub whole: bool,
}

impl Followed {
    /// Nothing of a process was.
    #[must_use]
    pub fn nothing(start: &ProcessStart) -> Self {
        let (process, pid) = (start.process, start.pid);
        Self { process, pid, instructions: 0, ticks: 0, until: 0, whole: false }
    }
}

/// What was checked of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// The rules.
    pub rules: Vec<String>,
    /// Whether every instruction of every process was followed.
    pub whole: bool,
    /// What was followed of each process.
    pub followed: Vec<Followed>,
    /// How the rest was checked, and what of it was not: one sentence each.
    pub rest: Vec<String>,
}

impl Coverage {
    /// Of a run that was followed as a whole while it ran.
    #[must_use]
    pub fn of_whole(rules: &[Rule]) -> Self {
        Self { rules: names(rules), whole: true, ..Self::default() }
    }

    /// Of a run that was screened, after the beginnings of its processes were followed.
    #[must_use]
    pub fn of_screened(rules: &[Rule], followed: Vec<Followed>) -> Self {
        let whole = followed.iter().all(|one| one.whole);
        let rest = if whole { Vec::new() } else { rest(rules) };
        Self { rules: names(rules), whole, followed, rest }
    }

    /// What came after something that cannot be recorded is not checked.
    pub fn cut(&mut self, why: &str) {
        self.whole = false;
        self.rest.push(format!("nothing is checked that came after this: {why}"));
    }

    /// One line that says it.
    #[must_use]
    pub fn line(&self) -> String {
        if self.whole {
            let instructions: u64 = self.followed.iter().map(|one| one.instructions).sum();
            let all = if instructions == 0 {
                "every instruction".to_owned()
            } else {
                format!("every one of {} instructions", thousands(instructions))
            };
            return format!("checked: {all}, for {}", self.rules.join(", "));
        }
        let instructions: u64 = self.followed.iter().map(|one| one.instructions).sum();
        let whole = self.followed.iter().filter(|one| one.whole).count();
        let processes = match self.followed.len() {
            0 | 1 => String::new(),
            all => format!(" of {all} processes, all of {whole} of them"),
        };
        format!(
            "checked: the first {} instructions{processes}, for {}; the rest: {}",
            thousands(instructions),
            self.rules.join(", "),
            self.rest.join("; ")
        )
    }
}

fn names(rules: &[Rule]) -> Vec<String> {
    rules.iter().map(|rule| rule.name.clone()).collect()
}

/// What becomes of each rule where a run is only screened.
fn rest(rules: &[Rule]) -> Vec<String> {
    let about_variables = |rule: &&Rule| REGIONS.contains(&rule.name.as_str());
    let (variables, others): (Vec<_>, Vec<_>) = rules.iter().partition(about_variables);
    let name = |rule: &&Rule| rule.name.clone();
    let list = |some: Vec<String>| some.join(", ");
    let light: Vec<String> = others.iter().filter(|rule| is_light(rule)).map(name).collect();
    let heavy = || others.iter().filter(|rule| !is_light(rule));
    let poisoned = heavy().filter(|rule| unwritten::concerns(rule)).map(name).collect::<Vec<_>>();
    let tested = heavy().filter(|rule| !unwritten::concerns(rule) && is_local(rule));
    let tested: Vec<String> = tested.map(name).collect();
    let never = heavy().filter(|rule| !unwritten::concerns(rule) && !is_local(rule));
    let never: Vec<String> = never.map(name).collect();
    let mut rest = Vec::new();
    let mut say = |rules: Vec<String>, what: &str| {
        if !rules.is_empty() {
            rest.push(format!("{} {what}", list(rules)));
        }
    };
    say(light, "at every call");
    say(tested, "where accesses leave the heap's blocks");
    say(poisoned, "where other contents in unwritten memory make a difference");
    say(variables.iter().map(name).collect(), "only in what led to a suspicion or a crash");
    say(never, "not at all");
    rest
}

/// Rules about variables and about what system calls are given, which no screen tests.
const REGIONS: [&str; 6] = [
    "stack-overflow",
    "use-after-return",
    "use-after-scope",
    "global-overflow",
    "member-overflow",
    "unaddressable-buffer",
];

/// A number that can be read.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Choice;
    use super::*;

    fn followed(instructions: u64, whole: bool) -> Followed {
        Followed { process: 0, pid: 7, instructions, ticks: 10, until: 10, whole }
    }

    #[test]
    fn every_rule_is_accounted_for() {
        let all = Choice { rules: Some(vec!["all".to_owned()]), ..Choice::default() };
        let rules = all.read().expect("shipped").rules;
        let said = rest(&rules).join("; ");
        for rule in &rules {
            assert!(said.contains(&rule.name), "{}: {said}", rule.name);
        }
    }

    #[test]
    fn the_line_says_how_much_was_followed() {
        let rules = Choice::default().read().expect("the default").rules;
        let whole = Coverage::of_screened(&rules, vec![followed(1_234_567, true)]);
        assert!(whole.line().contains("every one of 1,234,567 instructions"), "{}", whole.line());
        assert!(whole.whole && whole.rest.is_empty());
        let cut = Coverage::of_screened(&rules, vec![followed(999, true), followed(1000, false)]);
        let said = "the first 1,999 instructions of 2 processes, all of 1 of them";
        assert!(cut.line().contains(said), "{}", cut.line());
        assert!(cut.line().contains("stack-overflow") && !cut.whole);
        let mut stopped = whole;
        stopped.cut("a call that cannot be recorded");
        assert!(!stopped.whole && stopped.line().contains("a call that cannot be recorded"));
    }
}
