//! How variables are declared: name, type, function and line, for whoever found a variable by where it is.

use crate::address::FileAddress;
use crate::debug_info::{Attribute, DebugInfo};
use crate::module::SourceLine;
use crate::program::{Program, ProgramModule};
use crate::registers::Memory;
use crate::scene::Scene;
use crate::symbol_table::SymbolKind;
use crate::types::TypeRef;
use crate::units::EntryId;
use crate::unwind::{Stack, StackEnd};
use base::Address;
use gimli::constants as dw;

/// The declaration of a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its type as its language writes it, where debug information tells.
    pub ty: Option<String>,
    /// Where.
    pub line: Option<SourceLine>,
    /// The function whose variable it is.
    pub function: Option<String>,
}

/// No memory: what is asked of a type here needs none.
struct Nothing;

impl Memory for Nothing {
    fn read(&self, _: Address, _: &mut [u8]) -> bool {
        false
    }
}

impl Program {
    /// The variable of the function at `pc` that begins `offset` from the upper end of its frame.
    #[must_use]
    pub fn local_declared(&self, pc: Address, offset: i64) -> Option<Declared> {
        let (module, _) = self.locate(pc)?;
        let at = FileAddress::unloaded(pc, module.bias());
        let layout = module.module()?.frame_layout(at)?;
        let there = || layout.locals.iter().filter(|local| local.offset == offset);
        let visible = there().find(|local| local.is_visible(at.0));
        let local = visible.or_else(|| there().max_by_key(|local| local.size))?;
        let debug = module.module()?.debug()?;
        let mut declared = self.declaration(module, debug, local.entry)?;
        declared.function = debug.function_name(local.function);
        Some(declared)
    }

    /// The variable with static storage that begins at an address.
    #[must_use]
    pub fn static_declared(&self, address: Address) -> Option<Declared> {
        let (module, _) = self.locate(address)?;
        let at = FileAddress::unloaded(address, module.bias());
        let file = module.module()?;
        let from_debug = || {
            let debug = file.debug()?;
            let names = debug.names();
            let row = |row: &&u32| names.variables[**row as usize].address == Some(at);
            let found = &names.variables[*names.by_address.iter().find(row)? as usize];
            self.declaration(module, debug, found.entry)
        };
        from_debug().or_else(|| {
            let symbol = file.symbols().object_at(at).filter(|symbol| symbol.address == at)?;
            Some(Declared { name: symbol.demangled(), ..Declared::default() })
        })
    }

    /// The thread-local variable of a program `below` bytes below the thread pointer.
    #[must_use]
    pub fn thread_local_declared(&self, below: u64) -> Option<Declared> {
        self.modules().iter().find_map(|module| {
            let file = module.module()?;
            let tls = file.image().tls()?;
            let offset = tls.size.checked_next_multiple_of(tls.align)?.checked_sub(below)?;
            let mut own = file.symbols().iter().filter(|s| s.kind == SymbolKind::ThreadLocal);
            let symbol = own.find(|symbol| symbol.address.0 == offset)?;
            let name = symbol.demangled();
            let from_debug = || {
                let debug = file.debug()?;
                let found = debug.names().variables_named(&name).next()?.entry;
                self.declaration(module, debug, found)
            };
            let plain = Declared { name: name.clone(), ..Declared::default() };
            Some(from_debug().unwrap_or(plain))
        })
    }

    fn declaration(
        &self,
        module: &ProgramModule,
        debug: &DebugInfo,
        entry: EntryId,
    ) -> Option<Declared> {
        let name = debug.entry_name(entry)?;
        let ty = debug.type_of(entry);
        let number = self.modules().iter().position(|one| std::ptr::eq(one, module))?;
        let stack = Stack { frames: Vec::new(), end: StackEnd::Lost };
        let scene = Scene { program: self, memory: &Nothing, stack: &stack, thread_pointer: None };
        let named = |ty: &TypeRef| scene.type_name(number, ty).replace(" [", "[");
        let ty = (ty != TypeRef::Void).then(|| named(&ty));
        Some(Declared { name, ty, line: declared_at(debug, entry), function: None })
    }
}

/// Where an entry says that it is declared.
fn declared_at(debug: &DebugInfo, entry: EntryId) -> Option<SourceLine> {
    let number = |name| {
        let (unit, value) = debug.attribute(entry, &[name])?;
        let number = match value {
            Attribute::FileIndex(index) => index,
            value => value.udata_value()?,
        };
        Some((unit, u32::try_from(number).ok()?))
    };
    let (unit, file) = number(dw::DW_AT_decl_file)?;
    let (_, line) = number(dw::DW_AT_decl_line)?;
    debug.lines(&unit).line_of(file, line, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DebugFiles, LoadedModule};
    use base::Range;
    use std::process::Command;

    const SOURCE: &str = "char table[7];\n\
        static __thread short own[3];\n\
        int f(int n) {\n  char name[24];\n  { long inner[5]; inner[n] = n; n += inner[0]; }\n  \
        own[n] = 1; name[n] = table[n]; return name[0]; }\n\
        int main(int c, char **v) { return f(c); }\n";

    #[test]
    fn variables_are_found_by_where_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, binary) = (folder.path().join("a.c"), folder.path().join("a"));
        std::fs::write(&source, SOURCE).expect("a file");
        let built =
            Command::new("gcc").args(["-g", "-O0", "-o"]).arg(&binary).arg(&source).status();
        assert!(built.expect("gcc").success());
        let loaded = LoadedModule {
            path: binary,
            bias: 0,
            range: Range { start: Address(0), end: Address(1 << 30) },
        };
        let program = Program::open(vec![loaded], &DebugFiles::default());
        let file = program.modules()[0].module().expect("it can be read");
        let symbol = |name: &str| {
            let found = file.symbols().iter().find(|symbol| symbol.name == name);
            found.expect("it is there").address
        };
        let start = symbol("f");
        let layout = file.frame_layout(start).expect("debug information");
        let said = |found: Option<Declared>| {
            let found = found.expect("it is declared");
            (found.name, found.ty.unwrap_or_default(), found.line.map(|line| line.line))
        };
        let mut locals: Vec<_> = layout
            .locals
            .iter()
            .map(|local| said(program.local_declared(Address(start.0), local.offset)))
            .collect();
        locals.sort();
        let row = |name: &str, ty: &str, line| (name.to_owned(), ty.to_owned(), Some(line));
        assert_eq!(
            locals,
            [row("inner", "long int[5]", 5), row("n", "int", 3), row("name", "char[24]", 4)]
        );
        let inner = layout.locals.iter().find(|local| local.size == 40).expect("it is there");
        assert!(!inner.scope.is_empty() && !inner.is_visible(start.0), "{inner:?}");
        let table = program.static_declared(Address(symbol("table").0));
        assert_eq!(said(table), row("table", "char[7]", 1));
        let tls = file.image().tls().expect("it has some");
        let below = tls.size.next_multiple_of(tls.align) - symbol("own").0;
        assert_eq!(said(program.thread_local_declared(below)), row("own", "short int[3]", 2));
    }
}
