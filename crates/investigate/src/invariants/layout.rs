//! Which code and data of a program are its own: those of the executable, and of libraries with debug
//! information that are no runtime. Of a file with debug information only the code that it describes counts.

use super::prototypes;
use base::allocator::Allocators;
use base::{ModuleKind, Range};
use invariants::layout::{Function, Layout};
use symbols::program::ProgramModule;
use symbols::symbol_table::SymbolKind;
use symbols::{Module, Program};

/// The layout of a program.
#[must_use]
pub fn of(program: &Program) -> Layout {
    let mut layout = Layout::default();
    let executable = program.modules().iter().position(is_executable).unwrap_or(0);
    for (number, loaded) in program.modules().iter().enumerate() {
        let range = loaded.loaded().range;
        layout.files.push(range.start.0..range.end.0);
        let Some(module) = loaded.module() else { continue };
        add_allocators(&mut layout, loaded, module);
        let path = loaded.loaded().path.to_string_lossy();
        let is_library = ModuleKind::of(&path).is_runtime() || !module.has_debug_info();
        if number == executable || !is_library {
            add_code(&mut layout, program, number, module);
            add_data(&mut layout, loaded, module);
            add_stubs(&mut layout, loaded, module);
        }
    }
    layout.code.sort_by_key(|range| range.start);
    layout.files.sort_by_key(|range| range.start);
    layout
}

/// Libraries and the loader have names that say so.
fn is_executable(module: &ProgramModule) -> bool {
    let path = module.loaded().path.to_string_lossy();
    let name = path.rsplit('/').next().unwrap_or_default();
    !name.contains(".so") && !ModuleKind::of(&path).is_runtime()
}

fn add_code(layout: &mut Layout, program: &Program, number: usize, module: &Module) {
    for function in program.functions(number) {
        if function.debug_info != module.has_debug_info() || is_start_code(&function.name) {
            continue;
        }
        layout.code.extend(function.ranges.iter().map(|Range { start, end }| start.0..end.0));
        let Some(signature) = program.signature_at(function.entry) else { continue };
        let arguments = signature.parameters.iter().map(|parameter| parameter.size).collect();
        let described =
            Function { name: function.name, arguments, result: signature.returns, own: true };
        layout.functions.insert(function.entry.0, described);
    }
}

/// What the compiler brings along to start and end a program.
fn is_start_code(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "_start",
        "_init",
        "_fini",
        "deregister_tm_clones",
        "register_tm_clones",
        "__do_global_dtors_aux",
        "frame_dummy",
        "__libc_csu_init",
        "__libc_csu_fini",
    ];
    NAMES.contains(&name)
}

fn add_data(layout: &mut Layout, loaded: &ProgramModule, module: &Module) {
    for name in [".data", ".bss"] {
        if let Some(section) = module.image().section(name).filter(|section| section.size > 0) {
            let start = section.address.loaded(loaded.bias()).0;
            layout.data.push(start..start + section.size);
        }
    }
}

/// Functions of other files are called through stubs, whose names say what they take.
fn add_stubs(layout: &mut Layout, loaded: &ProgramModule, module: &Module) {
    for symbol in module.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Stub) {
        let name = symbol.name.strip_suffix("@plt").unwrap_or(symbol.name);
        if let Some(function) = prototypes::of(name) {
            layout.functions.insert(symbol.address.loaded(loaded.bias()).0, function);
        }
    }
}

fn add_allocators(layout: &mut Layout, loaded: &ProgramModule, module: &Module) {
    let known = Allocators::default();
    for symbol in module.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function) {
        if let Some(allocator) = known.named(symbol.name) {
            layout.allocators.insert(symbol.address.loaded(loaded.bias()).0, allocator);
        }
    }
}
