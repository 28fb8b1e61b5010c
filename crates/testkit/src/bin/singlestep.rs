//! `singlestep`: runs a program one instruction at a time and prints what it executed.
#![forbid(unsafe_code)]

use clap::Parser;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::ffi::OsString;
use std::io::{BufWriter, ErrorKind, Write};
use std::process::{ExitCode, Stdio};
use testkit::singlestep::{AccessKind, Ending, RUNNER, Session, Start, Step};

/// The single-step reference: what a program executes, instruction by instruction
#[derive(Parser)]
struct Arguments {
    /// Start after the program stopped itself with SIGSTOP and left the runner's addresses
    #[arg(long)]
    from_stop: bool,
    /// One JSON object an instruction, then the counts
    #[arg(long, group = "form")]
    json: bool,
    /// The counts alone (the default)
    #[arg(long, group = "form")]
    count: bool,
    /// One line an instruction: address, disassembly, accesses, where it went
    #[arg(long, group = "form")]
    trace: bool,
    /// Write to this file; the program keeps the standard output
    #[arg(long)]
    output: Option<std::path::PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("singlestep: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |io: &std::io::Error| io.kind() == ErrorKind::BrokenPipe;
    error.downcast_ref::<std::io::Error>().is_some_and(broken)
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let start = if arguments.from_stop { Start::AfterStop(RUNNER) } else { Start::AtOnce };
    let mut out: Box<dyn Write> = match &arguments.output {
        Some(path) => Box::new(BufWriter::new(std::fs::File::create(path)?)),
        None => Box::new(BufWriter::new(std::io::stderr())),
    };
    let mut session = Session::launch(&arguments.command, &start, Stdio::inherit())?;
    let mut formatter = IntelFormatter::new();
    while let Some(step) = session.next_step()? {
        if arguments.trace {
            writeln!(out, "{}", line(step, &mut formatter))?;
        } else if arguments.json {
            writeln!(out, "{}", json(step))?;
        }
    }
    let ending = match session.ending() {
        Some(Ending::Exit(code)) => serde_json::json!({ "exit": code }),
        Some(Ending::Signal(signal)) => serde_json::json!({ "signal": signal }),
        None => serde_json::Value::Null,
    };
    let counts = session.counts();
    if arguments.json {
        writeln!(out, "{}", serde_json::json!({ "counts": counts, "ending": ending }))?;
    } else {
        let counts = serde_json::to_value(counts)?;
        for (name, value) in counts.as_object().into_iter().flatten() {
            writeln!(out, "{name} {value}")?;
        }
        writeln!(out, "ending {ending}")?;
    }
    out.flush()?;
    Ok(())
}

fn line(step: &Step, formatter: &mut IntelFormatter) -> String {
    let mut decoder = Decoder::with_ip(64, step.instruction(), step.pc, DecoderOptions::NONE);
    let mut text = format!("{:x}: ", step.pc);
    formatter.format(&decoder.decode(), &mut text);
    for access in &step.accesses {
        let kind = if access.kind == AccessKind::Read { 'R' } else { 'W' };
        text +=
            &format!(" {kind}[{:x},{}]={}", access.address, access.size, hex(step.value(access)));
    }
    if step.flow != testkit::singlestep::Flow::Next {
        text += &format!(" {:?}", step.flow);
    }
    if !step.completed {
        text += " (not completed)";
    }
    if let Some(signal) = step.entered_handler_of {
        text += &format!(" (in the handler of signal {signal})");
    }
    text
}

/// Bytes as a number, most significant first.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}

fn json(step: &Step) -> serde_json::Value {
    let accesses: Vec<_> = (step.accesses.iter())
        .map(|access| {
            serde_json::json!({
                "address": access.address,
                "size": access.size,
                "kind": access.kind,
                "value": hex(step.value(access)),
            })
        })
        .collect();
    serde_json::json!({
        "pc": step.pc,
        "bytes": step.instruction().iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "completed": step.completed,
        "tick": step.is_tick(),
        "handler": step.entered_handler_of,
        "flow": step.flow,
        "accesses": accesses,
    })
}
