//! Times the questions that commands ask of a program's debug information, one line each, for
//! `benches/symbols/run`. The crate addr2line answers the same addresses for comparison.

use base::{Address, Range};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use symbols::unwind::StackEnd;
use symbols::{DebugFiles, Level, LoadedModule, Memory, Printing, Program, Scene, Stack};

/// A program that is not running has no memory.
struct Nothing;

impl Memory for Nothing {
    fn read(&self, _: Address, _: &mut [u8]) -> bool {
        false
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, path, place, global] = &arguments[..] else {
        eprintln!("usage: measure ours|addr2line PROGRAM FILE:LINE GLOBAL");
        return ExitCode::from(2);
    };
    match mode.as_str() {
        "ours" => ours(Path::new(path), place, global),
        _ => theirs(Path::new(path)),
    }
    ExitCode::SUCCESS
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{what}\t{:.3}", start.elapsed().as_secs_f64() * 1000.0);
    result
}

fn open(path: &Path) -> Program {
    let range = Range::new(0x1000, 1 << 40);
    Program::open([LoadedModule { path: path.into(), bias: 0, range }], &DebugFiles::default())
}

/// Addresses all over the code, in an order without locality.
fn addresses(path: &Path) -> Vec<u64> {
    let program = open(path);
    let module = program.modules()[0].module().expect("an ELF file");
    let mut starts: Vec<u64> = module
        .symbols()
        .iter()
        .filter(|symbol| symbol.size > 8)
        .filter(|symbol| symbol.kind == symbols::symbol_table::SymbolKind::Function)
        .map(|symbol| symbol.address.0 + 5)
        .collect();
    starts.sort_by_key(|address| address.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    starts.truncate(10_000);
    starts
}

fn ours(path: &Path, place: &str, global: &str) {
    let addresses = addresses(path);
    let program = timed("open", || open(path));
    timed("first address", || program.symbolise(Address(addresses[0])));
    let named = timed("10,000 more addresses", || {
        addresses.iter().filter(|at| !program.symbolise(Address(**at)).frames.is_empty()).count()
    });
    let place = place.parse().expect("a place");
    timed("first FILE:LINE", || program.resolve(&place).map(|found| found.len()).ok());
    let stack = Stack { frames: Vec::new(), end: StackEnd::Lost };
    let scene = Scene { program: &program, memory: &Nothing, stack: &stack, thread_pointer: None };
    let value = timed("first name (indexes all)", || scene.evaluate(Level::default(), global));
    let type_name = timed("its type", || {
        let value = value.as_ref().expect("a value");
        let _ = scene.print(value, &Printing::SHORT);
        scene.type_name(value.module, &value.ty)
    });
    println!("answered\t{named} of {}, {global} is {type_name}", addresses.len());
    peak();
}

fn theirs(path: &Path) {
    let addresses = addresses(path);
    let context = timed("open", || {
        let image = symbols::Image::open(path).expect("an ELF file");
        let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let bytes = image.contents(id.name()).unwrap_or_else(|| [].into());
            Ok(gimli::EndianArcSlice::new(bytes, gimli::LittleEndian))
        };
        addr2line::Context::from_dwarf(gimli::Dwarf::load(load).expect("sections"))
            .expect("debug information")
    });
    let frames = |address: u64| {
        let mut found = context.find_frames(address).skip_all_loads().expect("frames");
        let mut count = 0;
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
            count += usize::from(name.is_some());
        }
        count
    };
    timed("first address", || frames(addresses[0]));
    timed("10,000 more addresses", || addresses.iter().map(|at| frames(*at)).sum::<usize>());
    peak();
}

fn peak() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!("peak memory\t{}", line.unwrap_or("unknown").trim());
}
