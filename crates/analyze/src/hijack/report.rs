//! From a hijack to a finding: at the write that did it, with where control went.

use super::{Hijack, Overwritten, Write};
use crate::rules::machine::chains::Stamp;
use crate::rules::report::frames::{frames, own_place, steps};
use base::{Address, Confidence, Finding, Place, Role, Step, When};
use symbols::Program;

/// The finding, with its moment as `when` tells it; nothing if it is what runtimes do on purpose.
#[must_use]
pub fn finding(
    hijack: &Hijack,
    program: &Program,
    when: &dyn Fn(Stamp) -> Option<When>,
) -> Option<Finding> {
    if is_on_purpose(hijack, program) {
        return None;
    }
    let of = function(program, hijack.pc);
    let (kind, title) = match hijack.what {
        Overwritten::Return { .. } => {
            ("overwritten-return-address", format!("the return address of {of} is overwritten"))
        }
        Overwritten::FramePointer => {
            ("overwritten-frame-pointer", format!("the frame pointer of {of} is overwritten"))
        }
        Overwritten::JumpBuffer => (
            "overwritten-jump-buffer",
            "a buffer of setjmp is overwritten before longjmp uses it".to_owned(),
        ),
        Overwritten::Pointer { target } => (
            "overwritten-code-pointer",
            format!("a pointer to code is overwritten, and leads to {target:#x}"),
        ),
    };
    let stored: Vec<u64> =
        std::iter::once(hijack.write.pc).chain(hijack.write.callers.iter().copied()).collect();
    let mut evidence = vec![Step::new(writing(hijack))];
    let stored = frames(&stored, program);
    evidence.extend(steps("", Role::Call, &stored, program));
    evidence.push(going(hijack, program));
    let found = Finding {
        kind: kind.to_owned(),
        title,
        confidence: Confidence::Certain,
        place: own_place(&stored),
        when: None,
        evidence,
    };
    Some(found.at_time(when(hijack.write.stamp)))
}

fn place(program: &Program, pc: u64) -> Place {
    own_place(&frames(&[pc], program)).unwrap_or_default()
}

fn function(program: &Program, pc: u64) -> String {
    place(program, pc).function.unwrap_or_else(|| format!("the code at {pc:#x}"))
}

/// What was written, and over what.
fn writing(hijack: &Hijack) -> String {
    let Write { address, size, value, by_kernel, .. } = hijack.write;
    let plural = if size == 1 { "" } else { "s" };
    let by = if by_kernel { " by the kernel" } else { "" };
    let what = match hijack.what {
        Overwritten::Return { .. } => "the return address",
        Overwritten::FramePointer => "the saved frame pointer",
        Overwritten::JumpBuffer => "the buffer",
        Overwritten::Pointer { .. } => "the pointer",
    };
    let told = value.filter(|_| size <= 8).map(|value| format!(": {value:#x}"));
    format!(
        "{size} byte{plural} written{by} at {address:#x}, over {what} at {:#x}{}",
        hijack.place,
        told.unwrap_or_default()
    )
}

/// Where control went.
fn going(hijack: &Hijack, program: &Program) -> Step {
    let named = |pc: u64| {
        let code = program.symbolise(Address(pc));
        match code.symbol {
            Some((name, 0)) => format!("{pc:#x} ({name})"),
            Some((name, by)) => format!("{pc:#x} ({name}+{by:#x})"),
            None => format!("{pc:#x}"),
        }
    };
    let text = match hijack.what {
        Overwritten::Return { expected, target } => {
            format!("it returned to {} in place of {}", named(target), named(expected))
        }
        Overwritten::FramePointer => "its caller went on with what was written".to_owned(),
        Overwritten::JumpBuffer => "longjmp read what was written".to_owned(),
        Overwritten::Pointer { target } => format!("it jumped to {}", named(target)),
    };
    Step::new(text).at(place(program, hijack.pc))
}

/// The unwinder stores the address of a landing pad over that of a return, `makecontext` that of the first
/// function of a context, and a compiler at run time that of a stub for code that it has dropped.
fn is_on_purpose(hijack: &Hijack, program: &Program) -> bool {
    let writer = program.symbolise(Address(hijack.write.pc));
    let name = writer.symbol.map(|(name, _)| name).unwrap_or_default();
    let module = writer.module.as_ref().and_then(|path| path.file_name()).unwrap_or_default();
    let module = module.to_string_lossy();
    let unwinds = name.starts_with("_Unwind_")
        || ["libgcc_s.", "libunwind."].iter().any(|start| module.starts_with(start));
    let no_file = |pc: u64| program.locate(Address(pc)).is_none();
    let generated = match hijack.what {
        Overwritten::Return { expected, target } => no_file(expected) && no_file(target),
        _ => false,
    };
    unwinds || name.contains("makecontext") || generated
}
