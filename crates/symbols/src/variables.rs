//! Which variables can be seen from a call, and what they are there.

use crate::address::FileAddress;
use crate::demangle::names;
use crate::module::{SourceFrame, SourceLine};
use crate::scene::{Level, Scene};
use crate::scope::{Scope, ScopeKind};
use crate::suggest::near;
use crate::types::TypeRef;
use crate::units::EntryId;
use crate::unwind::FoundBy;
use crate::value::{Held, Value};
use base::Address;
use std::collections::HashMap;
use std::sync::Arc;

/// A variable that can be seen from a call.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Whether it is a parameter.
    pub parameter: bool,
    /// Whether a variable of an inner block hides it.
    pub hidden: bool,
    module: usize,
    entry: EntryId,
    frame: usize,
}

/// An active call, inlined ones counted, innermost first.
#[derive(Clone, Debug)]
pub struct Call {
    /// How to ask for its variables.
    pub level: Level,
    /// The next instruction to run in its frame.
    pub pc: Address,
    /// The function, demangled.
    pub function: Option<String>,
    /// The line that it is at.
    pub line: Option<SourceLine>,
    /// How its frame was found.
    pub found_by: FoundBy,
}

impl<'a> Scene<'a> {
    /// The active calls, inlined ones too.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.each_call().collect()
    }

    /// The same, found one by one. Runaway recursion makes a hundred thousand frames at a few
    /// addresses, so what is known of an address is kept.
    pub fn each_call(&self) -> impl Iterator<Item = Call> + use<'a> {
        let program = self.program;
        let mut known: HashMap<Address, Vec<SourceFrame>> = HashMap::new();
        self.stack.frames.iter().enumerate().flat_map(move |(index, frame)| {
            let code = frame.code();
            let sources = known.entry(code).or_insert_with(|| program.symbolise(code).frames);
            let calls = (0..sources.len().max(1)).map(|inlined| {
                let source = sources.get(inlined).cloned();
                let (function, line) = source.map_or((None, None), |s| (s.function, s.line));
                let level = Level { frame: index, inlined };
                Call { level, pc: frame.pc, function, line, found_by: frame.found_by }
            });
            calls.collect::<Vec<_>>()
        })
    }

    /// The parameters and variables of a call, those of inner blocks first.
    #[must_use]
    pub fn locals(&self, level: Level) -> Vec<Variable> {
        let Some((module, scopes)) = self.scopes(level) else { return Vec::new() };
        let mut variables: Vec<Variable> = Vec::new();
        let Some(debug) = self.debug(module) else { return variables };
        scopes.each(|scope| {
            for variable in &scope.variables {
                let Some(name) = debug.entry_name(variable.entry) else { continue };
                let hidden = variables.iter().any(|known| known.name == name);
                variables.push(Variable {
                    name,
                    parameter: variable.parameter,
                    hidden,
                    module,
                    entry: variable.entry,
                    frame: level.frame,
                });
            }
        });
        variables
    }

    /// What a variable is at this moment.
    #[must_use]
    pub fn value_of(&self, variable: &Variable) -> Value {
        self.locate(variable.module, variable.entry, Some(variable.frame))
    }

    /// The stretches of code in which the compiler says where the variable is, as far as they
    /// lie in its function, and the register it is in there if it is in one.
    #[must_use]
    pub fn known_ranges(&self, variable: &Variable) -> Vec<crate::value_ranges::KnownRange> {
        crate::value_ranges::known(self, variable.module, variable.entry)
    }

    /// The variable that `name` means when seen from a call.
    pub(crate) fn variable_named(&self, level: Level, name: &str) -> Option<Value> {
        let local =
            self.locals(level).into_iter().find(|local| !local.hidden && local.name == name);
        if let Some(local) = local {
            return Some(self.value_of(&local));
        }
        self.static_named(level, name)
            .or_else(|| self.local_of_function(name))
            .or_else(|| self.symbol_named(level, name))
            .or_else(|| self.function_named(name))
    }

    /// A variable with static storage: of the same unit, the same module, then any other.
    fn static_named(&self, level: Level, name: &str) -> Option<Value> {
        let here = self.here(level);
        let home = here.map_or(0, |(module, _)| module);
        let unit = here.and_then(|(module, at)| self.debug(module)?.unit_at(at)).map(|u| u.id);
        let function = self
            .scopes(level)
            .and_then(|(module, scopes)| self.debug(module)?.function_name(scopes.function()?));
        let others = (0..self.program.modules().len()).filter(|other| *other != home);
        for module in std::iter::once(home).chain(others) {
            let Some(debug) = self.debug(module) else { continue };
            let found = debug.names().variables_named(name).min_by_key(|variable| {
                let exact = *variable.name == *name;
                let own_unit = module == home && Some(variable.entry.unit) == unit;
                let own_static = variable.in_function
                    && function
                        .as_deref()
                        .is_some_and(|function| variable.name.starts_with(function));
                // Another function's static is not meant by its bare name while others fit.
                (!own_static, variable.in_function && !name.contains("::"), !own_unit, !exact)
            });
            if let Some(found) = found {
                return Some(self.locate(module, found.entry, None));
            }
        }
        None
    }

    /// `function::local` of the innermost active call of that function.
    fn local_of_function(&self, name: &str) -> Option<Value> {
        let (function, local) = name.rsplit_once("::")?;
        let call = self
            .each_call()
            .find(|call| call.function.as_deref().is_some_and(|active| names(function, active)))?;
        let found = self.locals(call.level).into_iter().find(|found| found.name == local)?;
        Some(self.value_of(&found))
    }

    /// Without debug information an object is so many bytes.
    fn symbol_named(&self, level: Level, name: &str) -> Option<Value> {
        let home = self.here(level).map_or(0, |(module, _)| module);
        let address = self.program.object_named(home, name)?;
        let (loaded, module) = self.program.locate(address)?;
        let at = FileAddress::unloaded(address, loaded.bias());
        let size = loaded.module()?.symbols().object_at(at).map_or(0, |symbol| symbol.size);
        let ty = match size {
            1 | 2 | 4 | 8 => TypeRef::Integer { size, signed: false },
            _ => TypeRef::BYTE.array(size),
        };
        Some(Value { module, ty, held: Held::Memory(address) })
    }

    fn function_named(&self, name: &str) -> Option<Value> {
        (0..self.program.modules().len()).find_map(|module| {
            let debug = self.debug(module)?;
            let bias = self.program.modules()[module].bias();
            let (entry, start) = debug.names().functions_named(name).find_map(|function| {
                let (unit, entry) = debug.entry(function.entry)?;
                let start = unit.ranges(&entry).first()?.0;
                Some((function.entry, FileAddress(start)))
            })?;
            let held = Held::Memory(start.loaded(bias));
            Some(Value { module, ty: TypeRef::Entry(entry), held })
        })
    }

    /// Names like `wanted` that could have been meant in a call.
    pub(crate) fn near_names(&self, level: Level, wanted: &str) -> Vec<String> {
        let locals = self.locals(level);
        let module = self.here(level).map_or(0, |(module, _)| module);
        let statics = self.debug(module).map(|debug| &debug.names().variables[..]);
        let statics = statics.unwrap_or_default().iter().map(|variable| &*variable.name);
        near(wanted, locals.iter().map(|local| local.name.as_str()).chain(statics))
    }

    /// Module and code address of a call.
    pub(crate) fn here(&self, level: Level) -> Option<(usize, FileAddress)> {
        let code = self.frame(level.frame)?.code();
        let (loaded, module) = self.program.locate(code)?;
        Some((module, FileAddress::unloaded(code, loaded.bias())))
    }

    /// The scopes of a call, with the module they are from.
    pub(crate) fn scopes(&self, level: Level) -> Option<(usize, Scopes)> {
        let (module, at) = self.here(level)?;
        let debug = self.debug(module)?;
        let (_, function) = debug.function_at(at)?;
        Some((module, Scopes { scope: debug.scope(function.entry)?, at, inlined: level.inlined }))
    }
}

/// The nested scopes of one call at an address.
pub(crate) struct Scopes {
    scope: Arc<Scope>,
    at: FileAddress,
    inlined: usize,
}

impl Scopes {
    /// The function or inlined call itself.
    pub fn function(&self) -> Option<EntryId> {
        let mut last = None;
        self.each(|scope| last = Some(scope.entry));
        last
    }

    /// Calls `visit` for each scope, innermost first, out to the function or inlined call.
    pub fn each(&self, mut visit: impl FnMut(&Scope)) {
        let path = self.scope.around(self.at);
        let mut skip = self.inlined;
        for scope in path.iter().rev() {
            if skip == 0 {
                visit(scope);
            }
            if scope.kind != ScopeKind::Block {
                if skip == 0 {
                    return;
                }
                skip -= 1;
            }
        }
    }
}
