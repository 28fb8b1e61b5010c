//! What a function takes and returns in general registers, as its declaration says.

use crate::address::FileAddress;
use crate::debug_info::DebugInfo;
use crate::program::Program;
use crate::types::{Shape, TypeRef};
use base::Address;

/// Arguments that are passed in general registers.
const IN_REGISTERS: usize = 6;
/// Aliases that are followed to the type itself.
const DEEPEST: usize = 32;

/// A parameter that is passed in a general register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Bytes of the register that count.
    pub size: u8,
}

/// What a function takes and returns in general registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// The parameters by register (rdi, rsi, rdx, rcx, r8, r9), as far as it is known which register each
    /// has: not beyond a structure that is passed by value.
    pub parameters: Vec<Parameter>,
    /// Bytes of rax that count when it returns; `None` if it returns nothing there.
    pub returns: Option<u8>,
}

/// How a type is passed.
enum Passed {
    /// In a general register.
    Word(u8),
    /// In a vector register.
    Float,
    /// Some other way.
    Otherwise,
}

impl Program {
    /// What the function at `address` takes and returns, if debug information describes it.
    #[must_use]
    pub fn signature_at(&self, address: Address) -> Option<Signature> {
        let (loaded, _) = self.locate(address)?;
        let debug = loaded.module()?.debug()?;
        let (_, function) = debug.function_at(FileAddress::unloaded(address, loaded.bias()))?;
        let returns = match passed(debug, &debug.type_of(function.entry)) {
            Passed::Word(size) => Some(size),
            Passed::Float => None,
            // A large structure is returned where a hidden first parameter points.
            Passed::Otherwise if debug.type_of(function.entry) != TypeRef::Void => return None,
            Passed::Otherwise => None,
        };
        let scope = debug.scope(function.entry)?;
        let mut parameters = Vec::new();
        for variable in scope.variables.iter().filter(|variable| variable.parameter) {
            match passed(debug, &debug.type_of(variable.entry)) {
                Passed::Word(size) if parameters.len() < IN_REGISTERS => {
                    parameters.push(Parameter { name: debug.entry_name(variable.entry), size });
                }
                Passed::Float => {}
                Passed::Word(_) | Passed::Otherwise => break,
            }
        }
        Some(Signature { parameters, returns })
    }
}

fn passed(debug: &DebugInfo, ty: &TypeRef) -> Passed {
    let mut ty = ty.clone();
    for _ in 0..DEEPEST {
        let TypeRef::Entry(entry) = ty else { return Passed::Otherwise };
        let found = debug.entry_type(entry);
        let word = || match debug.size_of_entry(entry) {
            Some(size @ 1..=8) => Passed::Word(size as u8),
            _ => Passed::Otherwise,
        };
        match &found.shape {
            Shape::Alias { to, .. } => ty = to.clone(),
            Shape::Pointer { .. } | Shape::Reference { .. } => return Passed::Word(8),
            Shape::Integer { .. }
            | Shape::Boolean
            | Shape::Character { .. }
            | Shape::Enumeration { .. } => return word(),
            Shape::Float if found.size.is_some_and(|size| size <= 8) => return Passed::Float,
            _ => return Passed::Otherwise,
        }
    }
    Passed::Otherwise
}

#[cfg(test)]
mod tests {
    use crate::{DebugFiles, LoadedModule, Program};
    use base::Range;
    use std::process::Command;

    #[test]
    fn registers_are_counted_as_the_calling_convention_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, binary) = (folder.path().join("a.c"), folder.path().join("a"));
        let text = "typedef unsigned char byte; struct big { long a[4]; };\n\
            int mixed(byte b, double d, const char *p, short s) { return b + (int)d + *p + s; }\n\
            void nothing(void) {}\n\
            long behind(int a, struct big big, int c) { return a + big.a[0] + c; }\n\
            struct big hidden(int a) { struct big big = {{a}}; return big; }\n\
            int main(void) { return 0; }\n";
        std::fs::write(&source, text).expect("written");
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-O0", "-no-pie", "-o"]).arg(&binary).arg(&source);
        assert!(gcc.status().expect("gcc").success());
        let range = Range::new(0x40_0000, 0x10_0000);
        let program =
            Program::open([LoadedModule { path: binary, bias: 0, range }], &DebugFiles::default());
        let signature = |name: &str| {
            let functions = program.functions(0);
            let function = functions.iter().find(|function| function.name == name)?;
            program.signature_at(function.entry)
        };
        let sizes = |name: &str| {
            let signature = signature(name)?;
            let all = signature.parameters.iter().map(|one| (one.name.clone(), one.size));
            Some((all.collect::<Vec<_>>(), signature.returns))
        };
        let named = |name: &str, size| (Some(name.to_owned()), size);
        let mixed = vec![named("b", 1), named("p", 8), named("s", 2)];
        assert_eq!(sizes("mixed"), Some((mixed, Some(4))));
        assert_eq!(sizes("nothing"), Some((vec![], None)));
        assert_eq!(sizes("behind"), Some((vec![named("a", 4)], Some(8))));
        assert_eq!(sizes("hidden"), None, "its first argument is where to put the result");
    }
}
