//! Commands that go back to moments that were kept, and that change the past.

use super::slice::place;
use super::{Said, first_word, id, words};
use anyhow::bail;
use investigate::debugging::Debugger;
use investigate::debugging::altering::{How, Which};
use symbols::Level;

/// `checkpoint`
pub fn checkpoint(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let number = debugger.checkpoint()?;
    Ok(Said::stayed(format!("checkpoint {number}: {}", words::moment(debugger))))
}

/// `rollback ID`
pub fn rollback(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    debugger.rollback(id(text)?)?;
    Ok(Said::moved(format!("at {}", words::moment(debugger))))
}

/// `checkpoints`
pub fn checkpoints(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let line = |kept: &investigate::debugging::checkpoints::Checkpoint| {
        format!("checkpoint {}: {}, @{}", kept.id, words::place(&kept.place), kept.at.time)
    };
    let lines: Vec<String> = debugger.checkpoints().iter().map(line).collect();
    Ok(Said::stayed(if lines.is_empty() { "no checkpoints".into() } else { lines.join("\n") }))
}

/// `cdelete ID`
pub fn forget_checkpoint(
    debugger: &mut Debugger<'_>,
    _: Level,
    text: &str,
) -> anyhow::Result<Said> {
    debugger.forget_checkpoint(id(text)?)?;
    Ok(Said::stayed(format!("checkpoint {text} is forgotten")))
}

/// `switch PLACE [all|once|N]`
pub fn switch(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    alter(debugger, How::Switch, text)
}

/// `suppress PLACE|FUNCTION [all|once|N]`
pub fn suppress(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    alter(debugger, How::Suppress, text)
}

fn alter(debugger: &mut Debugger<'_>, how: How, text: &str) -> anyhow::Result<Said> {
    let (at, which) = first_word(text);
    let (at, which) = match at.split_once('#') {
        Some((at, number)) if which.is_empty() => (at, number),
        _ => (at, which),
    };
    let which = match which {
        "" | "once" => Which::Once,
        "all" => Which::All,
        number => match number.parse() {
            Ok(number) if number > 0 => Which::Nth(number),
            _ => bail!("'{number}' is not all, once or the number of an execution"),
        },
    };
    let was_away = debugger.is_away();
    let words = debugger.alter(how, &place(at)?, which)?;
    Ok(Said {
        text: format!("{words}; `continue` goes there and leaves the recording"),
        moved: was_away,
    })
}

/// `set EXPR=VALUE`
pub fn set(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let words = debugger.set(text)?;
    Ok(Said::moved(format!("{words}; going on from here leaves the recording")))
}

/// `unalter`
pub fn disarm(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    debugger.disarm();
    Ok(Said::moved("nothing is altered"))
}

/// `diversion`
pub fn told(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    if let (false, Some(words)) = (debugger.is_away(), debugger.altered()) {
        return Ok(Said::stayed(format!("to be altered: {words}")));
    }
    Ok(Said::stayed(words::answer(&debugger.told()?)))
}

/// `back`
pub fn back(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let text = match debugger.leave_diversion() {
        true => format!("back in the recording, at {}", words::moment(debugger)),
        false => "this is the recording".into(),
    };
    Ok(Said::moved(text))
}
