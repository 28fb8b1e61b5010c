//! Stacks of addresses as calls of functions: those that the compiler dissolved too, and which of them are
//! the program's own.

use base::{Address, ModuleKind, Place, Role, Step};
use std::path::PathBuf;
use symbols::Program;

/// A call that was active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it was.
    pub place: Place,
    /// The file that its code is from.
    pub module: Option<PathBuf>,
    /// Whether the compiler put the function's code into its caller's.
    pub inlined: bool,
}

impl Frame {
    /// Whether its code belongs to a language or the C library, not to whoever wrote the program.
    #[must_use]
    pub fn is_runtime(&self) -> bool {
        let path = self.module.as_ref().map(|path| path.display().to_string());
        path.is_some_and(|path| ModuleKind::of(&path).is_runtime())
    }

    /// Whether it is a line that the program's own authors wrote.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.place.is_own() && !self.is_runtime()
    }
}

/// The calls of a stack, innermost first.
#[must_use]
pub fn frames(pcs: &[u64], program: &Program) -> Vec<Frame> {
    pcs.iter().flat_map(|pc| frames_at(*pc, program)).collect()
}

/// The calls that are active at an address, the innermost inlined one first.
fn frames_at(pc: u64, program: &Program) -> Vec<Frame> {
    let code = program.symbolise(Address(pc));
    let (symbol, module) = (code.symbol.map(|(name, _)| name), code.module);
    let last = code.frames.len().saturating_sub(1);
    let known = code.frames.into_iter().enumerate().map(|(index, frame)| {
        let outermost = index == last;
        Frame {
            place: Place {
                file: frame.line.as_ref().map(|line| line.file.clone()),
                line: frame.line.map(|line| line.line),
                function: frame.function.or_else(|| symbol.clone().filter(|_| outermost)),
                address: Some(Address(pc)),
            },
            module: module.clone(),
            inlined: !outermost,
        }
    });
    let mut frames: Vec<Frame> = known.collect();
    if frames.is_empty() {
        let place = Place { function: symbol, address: Some(Address(pc)), ..Place::default() };
        frames.push(Frame { place, module, inlined: false });
    }
    frames
}

/// The innermost place of the program's own code, if there is one with a line: a library is not to blame
/// for what it was given.
#[must_use]
pub fn own_place(frames: &[Frame]) -> Option<Place> {
    let lined = |frame: &&Frame| frame.place.line.is_some();
    let mut program = frames.iter().filter(|frame| !frame.is_runtime());
    let own = frames.iter().find(|frame| frame.is_own());
    let chosen = own.or_else(|| program.clone().find(lined)).or_else(|| program.next());
    chosen.or_else(|| frames.iter().find(lined)).or(frames.first()).map(|frame| frame.place.clone())
}

/// The calls as steps of evidence. What started the program or the thread, further out than anything of the
/// program's own, says nothing and is left out.
#[must_use]
pub fn steps(before: &str, role: Role, frames: &[Frame], program: &Program) -> Vec<Step> {
    let outermost = frames.iter().rposition(Frame::is_own);
    let shown = outermost.map_or(frames.len(), |last| last + 1);
    let step = |(number, frame): (usize, &Frame)| {
        let place = frame.place.clone();
        let address = || place.address.unwrap_or_default().to_string();
        let function = place.function.clone().unwrap_or_else(address);
        let inlined = if frame.inlined { " (inlined)" } else { "" };
        let inside = inside_file(&place, program);
        Step::new(format!("{before}#{number} {function}{inside}{inlined}")).as_a(role).at(place)
    };
    frames[..shown].iter().enumerate().map(step).collect()
}

/// Where in its file code lies of which no line is known.
#[must_use]
pub fn inside_file(place: &Place, program: &Program) -> String {
    let Some(address) = place.address.filter(|_| place.line.is_none()) else {
        return String::new();
    };
    let Some((module, _)) = program.locate(address) else { return String::new() };
    let name = module.loaded().path.file_name().unwrap_or_default();
    format!(" in {}+{:#x}", name.display(), address.0.wrapping_sub(module.bias()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(module: &str, file: Option<&str>, function: &str) -> Frame {
        let place = Place { function: Some(function.into()), ..Place::default() };
        let place = match file {
            Some(file) => Place { file: Some(file.into()), line: Some(7), ..place },
            None => place,
        };
        Frame { place, module: Some(module.into()), inlined: false }
    }

    fn blamed(frames: &[Frame]) -> Option<String> {
        own_place(frames)?.function
    }

    #[test]
    fn a_library_is_looked_through_whatever_it_knows_of_itself() {
        const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";
        let strlen = frame(LIBC, Some("./string/../sysdeps/x86_64/strlen-avx2.S"), "strlen");
        let own = frame("/home/me/prog", Some("/home/me/prog.c"), "count");
        let start = frame("/home/me/prog", None, "_start");
        let rows = [
            (vec![strlen.clone(), own.clone(), start.clone()], "count"),
            (vec![strlen.clone(), start.clone()], "_start"),
            (vec![strlen.clone()], "strlen"),
            // A program of a distribution names its files so.
            (vec![strlen, frame("/usr/bin/sort", Some("./src/sort.c"), "merge")], "merge"),
            // In a static program only the source tells whose code it is.
            (vec![frame("/home/me/prog", Some("../sysdeps/memcpy.S"), "memcpy"), own], "count"),
        ];
        for (frames, expected) in rows {
            assert_eq!(blamed(&frames).as_deref(), Some(expected), "{frames:?}");
        }
        assert_eq!(blamed(&[]), None);
    }
}
