//! Movements backwards as commands, for clients that know only the way forwards.

use super::{Said, words};
use investigate::debugging::lines::Stride;
use investigate::debugging::{Debugger, Stop};
use symbols::Level;

type Answer = anyhow::Result<Said>;

pub fn resume(debugger: &mut Debugger<'_>, _: Level, _: &str) -> Answer {
    let stop = debugger.resume_back(&mut || false)?;
    Ok(told(debugger, &stop))
}

pub fn instruction(debugger: &mut Debugger<'_>, _: Level, _: &str) -> Answer {
    let stop = debugger.step_back(debugger.running())?;
    Ok(told(debugger, &stop))
}

pub fn into(debugger: &mut Debugger<'_>, _: Level, _: &str) -> Answer {
    line(debugger, Stride::Into)
}

pub fn over(debugger: &mut Debugger<'_>, _: Level, _: &str) -> Answer {
    line(debugger, Stride::Over)
}

pub fn out(debugger: &mut Debugger<'_>, _: Level, _: &str) -> Answer {
    line(debugger, Stride::Out)
}

fn line(debugger: &mut Debugger<'_>, stride: Stride) -> Answer {
    let stop = debugger.step_line(debugger.running(), (stride, true), &mut || false)?;
    Ok(told(debugger, &stop))
}

fn told(debugger: &mut Debugger<'_>, stop: &Stop) -> Said {
    let text = match stop {
        Stop::Beginning => "there is nothing before".into(),
        Stop::Watched(watched) if watched.write => {
            format!("{:#x} is about to be written", watched.watch.address)
        }
        Stop::Watched(watched) => format!("{:#x} is about to be read", watched.watch.address),
        stop => words::stop(debugger, stop).unwrap_or_default(),
    };
    Said::moved(text)
}
