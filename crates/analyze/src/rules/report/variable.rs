//! What a variable is called: its name, its type and where it is declared, from the program's files.

use crate::rules::hit::{BlockHistory, Variable};
use base::Address;
use symbols::{Declared, Program};

/// A variable as a finding calls it: `` `name`, char[1024], input.c:233 ``.
#[must_use]
pub fn name(block: &BlockHistory, program: &Program) -> Option<String> {
    let declared = match block.variable? {
        Variable::Local { offset } => {
            program.local_declared(Address(*block.allocated.first()?), offset)?
        }
        Variable::Static => program.static_declared(Address(block.begin))?,
        Variable::ThreadLocal { below } => program.thread_local_declared(below)?,
        Variable::Dynamic => return Some(room(block)),
    };
    Some(text(&declared, block.size))
}

fn room(block: &BlockHistory) -> String {
    format!(
        "room for {} bytes that was made on the stack (alloca, or an array of variable length)",
        block.size
    )
}

fn text(declared: &Declared, size: u64) -> String {
    let Declared { name, ty, line, .. } = declared;
    let mut text = format!("`{name}`, ");
    match ty {
        Some(ty) => text.push_str(ty),
        None => text.push_str(&super::words::bytes(size)),
    }
    if let Some(line) = line {
        let file = line.file.rsplit('/').next().unwrap_or(&line.file);
        text.push_str(&format!(", {file}:{}", line.line));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbols::SourceLine;

    #[test]
    fn what_is_known_is_said() {
        let mut declared = Declared { name: "name".to_owned(), ..Declared::default() };
        assert_eq!(text(&declared, 8), "`name`, 8 bytes");
        declared.ty = Some("char[1024]".to_owned());
        let file = "/source/input.c".to_owned();
        declared.line = Some(SourceLine { file, line: 233, column: 0 });
        assert_eq!(text(&declared, 1024), "`name`, char[1024], input.c:233");
    }
}
