//! Commands about where to stop.

use super::slice::place;
use super::{Said, first_word, id, number, words};
use anyhow::{Context, bail, ensure};
use investigate::debugging::conditions::{CallTest, Hits};
use investigate::debugging::{Debugger, Watch};
use symbols::Level;

/// `instance PLACE`
pub fn instance(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let place = place(text)?;
    let pcs = debugger.addresses(&place)?;
    let here = pcs.contains(&debugger.thread().pc) && debugger.end().is_none();
    let before = debugger.instance(&pcs)?;
    Ok(Said::stayed(match here {
        true => format!("execution {} of {place} comes next", before + 1),
        false => format!("{place} has been executed {before} times"),
    }))
}

/// `break-if PLACE if CONDITION`
pub fn break_if(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let (at, condition) = text.split_once(" if ").context("say `break-if PLACE if CONDITION`")?;
    let id = debugger.add_breakpoint(&place(at.trim())?, Some(condition.trim()), Hits::All)?;
    Ok(Said::stayed(format!("c{id}: {text}")))
}

/// `break-call FUNCTION [if TEST]`
pub fn break_call(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let (function, rest) = first_word(text);
    ensure!(!function.is_empty(), "say a function, such as `break-call free if arg1==0x5555`");
    let test = match rest.strip_prefix("if ") {
        Some(test) => call_test(test.trim())?,
        None if rest.is_empty() => CallTest::Any,
        None => bail!(
            "'{rest}' is not a test; say `if argN==V`, `if ret==V` or `if write ADDRESS SIZE`"
        ),
    };
    let id = debugger.add_call(function, test)?;
    Ok(Said::stayed(format!("c{id}: {text}")))
}

fn call_test(text: &str) -> anyhow::Result<CallTest> {
    if let Some((what, value)) = text.split_once("==") {
        let (what, value) = (what.trim(), number(value)?);
        if what == "ret" {
            return Ok(CallTest::Returns(value));
        }
        let argument = what.strip_prefix("arg").and_then(|digits| digits.parse().ok());
        let argument = argument.with_context(|| format!("'{what}' is neither argN nor ret"))?;
        return Ok(CallTest::Argument(argument, value));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let (kind, address, size) = match words[..] {
        [kind, address] => (kind, number(address)?, 1),
        [kind, address, size] => (kind, number(address)?, number(size)?.max(1)),
        _ => bail!(
            "'{text}' is not a test; say `argN==V`, `ret==V`, or `write|read|access ADDRESS [SIZE]`"
        ),
    };
    let (reads, writes) = match kind {
        "write" => (false, true),
        "read" => (true, false),
        "access" => (true, true),
        _ => bail!("'{kind}' is not write, read or access"),
    };
    Ok(CallTest::Touches(Watch { address, size, reads, writes }))
}

/// `catch-calls [NUMBER ...]`
pub fn catch_calls(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let numbers = text.split_whitespace().map(number).collect::<anyhow::Result<Vec<u64>>>()?;
    let id = debugger.add_system_calls(numbers)?;
    Ok(Said::stayed(format!("c{id}: system calls {text}")))
}

/// `catch-forks`
pub fn catch_forks(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let id = debugger.add_forks()?;
    Ok(Said::stayed(format!("c{id}: where processes are made")))
}

/// `catch-execs`
pub fn catch_execs(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let id = debugger.add_execs()?;
    Ok(Said::stayed(format!("c{id}: where it becomes another program")))
}

/// `catch-signals`
pub fn catch_signals(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let count = debugger.stop_at_signals()?;
    Ok(Said::stayed(format!("stops at {count} signals")))
}

/// `catch-threads`
pub fn catch_threads(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let count = debugger.stop_at_threads()?;
    Ok(Said::stayed(format!("stops where {count} threads begin")))
}

/// `catch-findings`
pub fn catch_findings(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let count = debugger.stop_at_findings()?;
    Ok(Said::stayed(format!("stops at {count} findings")))
}

/// `conditions`
pub fn list(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let lines: Vec<String> =
        debugger.conditional().iter().map(|it| format!("c{}: {}", it.id, it.words)).collect();
    Ok(Said::stayed(if lines.is_empty() { "none".into() } else { lines.join("\n") }))
}

/// `condition-delete ID`
pub fn forget(debugger: &mut Debugger<'_>, _: Level, text: &str) -> anyhow::Result<Said> {
    let number = id(text.trim_start_matches('c'))?;
    ensure!(debugger.remove_breakpoint(number), "there is no c{number}; `conditions` lists them");
    Ok(Said::stayed(format!("c{number} is forgotten")))
}

/// `findings`
pub fn findings(debugger: &mut Debugger<'_>, _: Level, _: &str) -> anyhow::Result<Said> {
    let lines: Vec<String> = debugger
        .findings()?
        .iter()
        .enumerate()
        .map(|(index, finding)| words::finding(index + 1, finding))
        .collect();
    Ok(Said::stayed(if lines.is_empty() {
        "the default rules find nothing".into()
    } else {
        lines.join("\n")
    }))
}
