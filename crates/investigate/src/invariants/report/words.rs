//! Anomalies in words.

use base::Step;
use invariants::anomaly::{Anomaly, Flow, What};
use invariants::model::{Model, Role, SiteId};
use invariants::uses::Origin;
use invariants::value::{Hypothesis, Numbers, Rule, Value, signed};

/// Stands before the one value that there was.
const ALWAYS: &str = "always ";

fn is_zero(value: Value) -> bool {
    matches!(value, Value::Number { bits: 0, .. })
}

/// One line that says what is new.
pub fn title(model: &Model, anomaly: &Anomaly, name: Option<&str>) -> String {
    let subject = subject(model, anomaly, name);
    match &anomaly.what {
        What::Value { value, violation, role } => {
            let is_null = violation.rule == Rule::Kinds && is_zero(*value);
            let now = if is_null { "NULL".into() } else { value_words(model, *value) };
            let before = hypothesis_words(model, &violation.before, *value, violation.rule);
            let times = times(violation.count);
            if *role == Role::Difference {
                match before.strip_prefix(ALWAYS) {
                    Some(one) => format!(
                        "{subject} changed by {now}; {times} before it was {ALWAYS}by {one}"
                    ),
                    None => {
                        format!("{subject} changed by {now}; {times} before it was by {before}")
                    }
                }
            } else {
                format!("{subject} is {now}; {times} before it was {before}")
            }
        }
        What::Flow { flows, definition, local, uses } => {
            let writer = writer(model, *definition);
            let kinds: Vec<&Flow> = flows.iter().map(|(flow, _)| flow).collect();
            let times = times(*uses);
            if kinds.contains(&&Flow::Follower) {
                format!(
                    "{subject} was changed by {writer} in another thread between two reads; {times} before it was not"
                )
            } else if kinds.iter().any(|flow| matches!(flow, Flow::Origin(Origin::Remote))) {
                format!(
                    "{subject} was written by {writer} in another thread; {times} before the reader's own thread had"
                )
            } else if kinds.iter().any(|flow| matches!(flow, Flow::Origin(Origin::Local))) {
                format!(
                    "{subject} was written by {writer} in the same thread; {times} before another thread had"
                )
            } else {
                let who = if *local { "" } else { " in another thread" };
                let who = if *definition == SiteId::EXTERNAL { "" } else { who };
                format!("{subject} was written by {writer}{who}; {times} before it never was")
            }
        }
        What::Lost { by, used } => {
            let writer = writer(model, *by);
            let times = times(*used);
            format!(
                "what was written to {subject} was overwritten by {writer} before it was read; {times} before it was read first"
            )
        }
        What::NewCode { function: true, .. } => {
            format!("{} ran for the first time", model.point(anomaly.site).site.key.line.function)
        }
        What::NewCode { lines, .. } => {
            let own = model.point(anomaly.site).site.line;
            let mut all: Vec<u32> = lines.iter().copied().chain(own).collect();
            all.sort_unstable();
            all.dedup();
            let function = &model.point(anomaly.site).site.key.line.function;
            match all.as_slice() {
                [] => format!("a part of {function} ran for the first time"),
                [line] => format!("line {line} of {function} ran for the first time"),
                _ => format!("lines {} of {function} ran for the first time", stretches(&all)),
            }
        }
    }
}

/// Line numbers as a reader would write them: `3, 7–9`.
pub fn stretches(lines: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == *line => *end = *line,
            _ => parts.push((*line, *line)),
        }
    }
    let part = |(start, end): &(u32, u32)| match start == end {
        true => start.to_string(),
        false => format!("{start}–{end}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// What a confidence is made of.
pub fn confidence(anomaly: &Anomaly) -> String {
    let score = score(anomaly.confidence);
    match &anomaly.what {
        What::Value { violation, .. } => {
            format!("confidence fell by {score}, after {} evaluations", grouped(violation.count))
        }
        What::Flow { uses, .. } => {
            let count = anomaly.count;
            let now = if count == 1 { "once".into() } else { format!("{} times", grouped(count)) };
            format!("confidence {score}: {} reads in training, and {now} now", grouped(*uses))
        }
        What::Lost { used, .. } => {
            format!("confidence {score}: used {} times in training", grouped(*used))
        }
        What::NewCode { .. } => format!("confidence {score}, which new code is given"),
    }
}

/// What was ordinary for a read: who had written what it used.
pub fn before(model: &Model, anomaly: &Anomaly) -> Vec<Step> {
    const MOST: usize = 4;
    let What::Flow { .. } = anomaly.what else { return Vec::new() };
    let reads = model.point(anomaly.site).reads.iter();
    let mut pairs: Vec<_> = reads.flat_map(|reads| &reads.definitions).collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.count));
    let rest = pairs.len().saturating_sub(MOST);
    let step = |pair: &&invariants::uses::Pair| {
        let step =
            Step::new(format!("{} of the reads before used what was written", grouped(pair.count)));
        match pair.site {
            SiteId::EXTERNAL => {
                Step::new(format!("{} before used what nobody had written", grouped(pair.count)))
            }
            site => step.at(super::place(model, site, None)),
        }
    };
    let mut steps: Vec<Step> = pairs.iter().take(MOST).map(step).collect();
    if rest > 0 {
        steps.push(Step::new(format!("and {rest} more")));
    }
    steps
}

fn writer(model: &Model, site: SiteId) -> String {
    match site {
        SiteId::EXTERNAL => "nobody".into(),
        site => model.point(site).site.to_string(),
    }
}

/// What an anomaly is about.
fn subject(model: &Model, anomaly: &Anomaly, name: Option<&str>) -> String {
    let point = model.point(anomaly.site);
    let called = point.what.as_deref().filter(|what| !what.is_empty());
    if let What::Value { role, .. } = &anomaly.what {
        match (role, called) {
            (Role::Argument(number) | Role::Entry(number), Some(function)) => {
                return format!("argument {} of {function}", number + 1);
            }
            (Role::Result, Some(function)) => return format!("the result of {function}"),
            _ => {}
        }
    }
    match name.or(called) {
        Some(name) => name.to_owned(),
        None => "the memory".into(),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "the one time".into(),
        count => format!("the {} times", grouped(count)),
    }
}

/// A value for a reader.
pub fn value_words(model: &Model, value: Value) -> String {
    match value {
        Value::Number { bits, size } => number_words(bits, size),
        Value::Object(kind) => {
            let name = model.kinds.get(kind.0 as usize).map_or("an object", String::as_str);
            format!("the address of {name}")
        }
    }
}

fn number_words(bits: u64, size: u8) -> String {
    let number = signed(bits, size);
    match u8::try_from(bits) {
        Ok(byte) if size == 1 && byte.is_ascii_graphic() => {
            format!("{number} ('{}')", char::from(byte))
        }
        _ => number.to_string(),
    }
}

/// What was supposed, as far as a value contradicts it.
pub fn hypothesis_words(model: &Model, before: &Hypothesis, now: Value, rule: Rule) -> String {
    if rule == Rule::Kinds {
        let mut names: Vec<String> =
            before.kinds.iter().map(|kind| value_words(model, Value::Object(*kind))).collect();
        if let Some(numbers) = &before.numbers {
            let null = numbers.few.as_deref() == Some(&[0]);
            names.push(if null { "NULL".into() } else { numbers_words(numbers) });
        }
        return listed(&names);
    }
    match (&before.numbers, now) {
        (Some(numbers), Value::Number { bits, .. }) => {
            let inside = (numbers.low..=numbers.high).contains(&signed(bits, numbers.size));
            if numbers.few.is_none() && inside {
                let fresh = (bits ^ numbers.first) & !numbers.varied;
                return format!("{}, and bits {fresh:#x} never varied", numbers_words(numbers));
            }
            numbers_words(numbers)
        }
        _ => "never a number".into(),
    }
}

/// All that is supposed of an expression.
pub fn hypothesis_line(model: &Model, hypothesis: &Hypothesis) -> String {
    let mut words: Vec<String> =
        hypothesis.kinds.iter().map(|kind| value_words(model, Value::Object(*kind))).collect();
    if hypothesis.any_kind {
        words.push("addresses of many kinds of objects".into());
    }
    words.extend(hypothesis.numbers.as_ref().map(numbers_words));
    format!("{} ({} times)", listed(&words), grouped(hypothesis.count()))
}

/// Numbers that were seen.
pub fn numbers_words(numbers: &Numbers) -> String {
    match &numbers.few {
        Some(few) if few.len() == 1 => format!("{ALWAYS}{}", number_words(few[0], numbers.size)),
        Some(few) => {
            let mut ordered = few.clone();
            ordered.sort_by_key(|bits| signed(*bits, numbers.size));
            let words: Vec<String> =
                ordered.iter().map(|bits| number_words(*bits, numbers.size)).collect();
            listed(&words)
        }
        None => format!("from {} to {}", numbers.low, numbers.high),
    }
}

fn listed(words: &[String]) -> String {
    match words {
        [] => "nothing".into(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// A confidence for a reader.
pub fn score(score: f64) -> String {
    let whole = grouped(score.trunc() as u64);
    let part = (score.fract() * 100.0).round() as u64;
    match (score, part) {
        (100.0.., _) | (_, 0 | 100) => whole,
        _ => format!("{whole}.{part:02}").trim_end_matches('0').to_owned(),
    }
}

/// A number with its digits in groups.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!((score(211_245.75), score(0.5), score(9.25), score(3.0)).0, "211,245");
        assert_eq!([score(0.5), score(9.25), score(3.0)], ["0.5", "9.25", "3"]);
        assert_eq!(stretches(&[3, 7, 8, 9, 12]), "3, 7–9, 12");
        assert_eq!(number_words(0x29, 1), "41 (')')");
        assert_eq!(number_words(0xffff_ffff, 4), "-1");
    }
}
