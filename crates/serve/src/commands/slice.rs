//! Commands about slices.

use super::{Said, first_word, id, words};
use anyhow::{Context, bail, ensure};
use base::moment::Instant as Written;
use base::{Moment, Nth, PlaceName};
use investigate::debugging::{Debugger, Stop};
use investigate::slicing::{Follow, Query};
use symbols::Level;

/// `slice PLACE [N] [VALUE | ADDRESS SIZE | $REGISTER] ...`; the place may be `here`.
pub fn make(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    ensure!(
        !words.is_empty(),
        "say a statement, such as `slice list.c:29 3 node`, or `slice here`"
    );
    let at = words.remove(0);
    let at = match at {
        "here" => debugger.moment(),
        at => moment(at, &mut words)?,
    };
    let mut query = Query::new(Follow::Full);
    query.at = (at != Moment::END).then_some(at);
    query.values = values(&words)?;
    let id = debugger.slice(query)?;
    let made = debugger.slices().iter().find(|slice| slice.id == id).context("it is there")?;
    Ok(Said::stayed(format!("{}\n{}", words::slice(made), words::view(&made.view))))
}

/// `PLACE [N]`: a number behind the place is the execution.
fn moment(at: &str, words: &mut Vec<&str>) -> anyhow::Result<Moment> {
    let mut moment: Moment = at.parse()?;
    let counted = at.contains('#');
    if let (Some(number), false) =
        (words.first().and_then(|word| word.parse::<u64>().ok()), counted)
        && let Written::Place(_, nth) = &mut moment.instant
    {
        ensure!(number > 0, "executions count from 1");
        *nth = Nth::Number(number);
        words.remove(0);
    }
    Ok(moment)
}

/// Values; an address is followed by its size.
fn values(words: &[&str]) -> anyhow::Result<Vec<String>> {
    let (mut all, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        if word.starts_with("0x") {
            let size = words.next().with_context(|| format!("how many bytes at {word}?"))?;
            all.push(format!("[{word},{size}]"));
        } else {
            all.push((*word).to_owned());
        }
    }
    Ok(all)
}

/// `show ID`
pub fn show(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let id = id(text)?;
    let found = debugger.slices().iter().find(|slice| slice.id == id);
    let slice =
        found.with_context(|| format!("there is no slice {id}; `info slices` lists them"))?;
    Ok(Said::stayed(format!("{}\n{}", words::slice(slice), words::view(&slice.view))))
}

/// `slices`
pub fn list(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let lines: Vec<String> = debugger.slices().iter().map(words::slice).collect();
    let mut text = if lines.is_empty() { "no slices".into() } else { lines.join("\n") };
    if let Some((from, to)) = debugger.recorded_between() {
        let to = to.as_ref().map_or_else(|| "the end".into(), ToString::to_string);
        text += &format!("\nslices look from {from} to {to}");
    }
    Ok(Said::stayed(text))
}

/// `prune ID VALUE ...`
pub fn prune(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let (number, rest) = first_word(text);
    let words: Vec<&str> = rest.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    ensure!(!words.is_empty(), "say what to leave out, such as `prune 1 i`");
    let number = id(number)?;
    let (before, now) = debugger.prune(number, &values(&words)?)?;
    Ok(Said::stayed(format!("slice {number}: {now} statements of {before} are left")))
}

/// `record PLACE on`, `record PLACE off`, `record off`
pub fn record(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    if text == "off" {
        debugger.record_between(None);
        return Ok(Said::stayed("slices look at everything"));
    }
    let (place, word) = first_word(text);
    let moment = |first: bool| -> anyhow::Result<Moment> {
        let counted = place.contains('#') || place.starts_with('@');
        let text = if counted || !first { place.to_owned() } else { format!("{place}#1") };
        Ok(text.parse()?)
    };
    match word {
        "on" => {
            let to = debugger.recorded_between().and_then(|(_, to)| to.clone());
            debugger.record_between(Some((moment(true)?, to)));
        }
        "off" => {
            let from = debugger.recorded_between().map(|(from, _)| from.clone());
            let start = Moment { instant: Written::Start, thread: None };
            debugger.record_between(Some((from.unwrap_or(start), Some(moment(false)?))));
        }
        _ => bail!("say `record FILE:LINE on`, `record FILE:LINE off`, or `record off` for all"),
    }
    list(debugger, Level::default(), "")
}

/// `sbreak ID S ...`, `sbreak all ID`
pub fn stop(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let (number, statements) = match &words[..] {
        ["all", number] | [number, "all"] => (id(number)?, None),
        [number, statements @ ..] if !statements.is_empty() => {
            let numbers = statements.iter().map(|word| id(word).map(|number| number as usize));
            (id(number)?, Some(numbers.collect::<anyhow::Result<Vec<usize>>>()?))
        }
        _ => bail!("say `sbreak ID S1 S2 ...` or `sbreak all ID`"),
    };
    let count = debugger.stop_in_slice(number, statements.as_deref())?;
    Ok(Said::stayed(format!("stops at {count} executions in slice {number}")))
}

/// `sdelete ID`
pub fn forget(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    debugger.forget_slice(id(text)?)?;
    Ok(Said::stayed(format!("slice {text} is forgotten")))
}

/// `sstep [ID]`
pub fn step(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    go(debugger, text, false)
}

/// `rsstep [ID]`
pub fn step_back(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    go(debugger, text, true)
}

fn go(debugger: &mut Debugger<'_>, text: &str, back: bool) -> anyhow::Result<Said> {
    let number = if text.is_empty() { None } else { Some(id(text)?) };
    let stop = debugger.step_slice(number, back)?;
    if stop != Stop::Moved {
        let word = if back { "before" } else { "behind" };
        return Ok(Said::stayed(format!("nothing of the slice is {word} this")));
    }
    let number = number.or_else(|| debugger.slices().last().map(|slice| slice.id)).unwrap_or(0);
    let statement = debugger.statement_here(number).map_or(0, |statement| statement + 1);
    Ok(Said::moved(format!("slice {number}, statement {statement}")))
}

/// Dependences between here and what `why` shows.
const NEAR: u32 = 12;

/// `why`
pub fn why(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let (asked, view) = debugger.why_here(NEAR)?;
    Ok(Said::stayed(format!("{asked}\n{}", words::view(&view))))
}

/// A place that a command begins with.
pub fn place(text: &str) -> anyhow::Result<PlaceName> {
    Ok(text.parse()?)
}
