//! Debug information wherever it is kept: each arrangement must give the answers of the plain
//! one.

mod support;

use base::{Address, Range};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Built, Stop, build, run, stop};
use symbols::{DebugFiles, Level, LoadedModule, Printing, Program, Scene};

/// What a program answers at a stop: the calls, and some values of the innermost two.
fn answers(built: &Built, files: &DebugFiles) -> Vec<String> {
    let stopped = stop(built, Stop { place: "*stop_here", ..Stop::default() });
    let program = Program::open(stopped.core.modules(), files);
    let stack = program.unwind(&stopped.core.registers, &stopped.core);
    let scene =
        Scene { program: &program, memory: &stopped.core, stack: &stack, thread_pointer: None };
    let mut answers = Vec::new();
    for call in scene.calls().iter().take(4) {
        let line = call.line.as_ref().map_or(0, |line| line.line);
        answers.push(format!("{}:{line}", call.function.as_deref().unwrap_or("?")));
    }
    for expression in ["count", "*item", "item->bits.high", "chain[1]", "mode", "sized", "local"] {
        let value = scene.evaluate(Level { frame: 1, inlined: 0 }, expression);
        answers.push(match value {
            Ok(value) => scene.print(&value, &Printing::default()),
            Err(error) => error.to_string(),
        });
    }
    answers
}

fn plain() -> Vec<String> {
    let answers = answers(&build("values.c", &["-O0", "-g"]), &DebugFiles::default());
    assert_eq!(answers[0], "stop_here:51");
    assert!(answers[5].contains("\"middle\""), "{answers:?}");
    answers
}

/// No folder of the system is searched.
fn nowhere() -> DebugFiles {
    DebugFiles::new([""; 0])
}

#[test]
fn split_units_are_found_as_files_and_in_packages() {
    let expected = plain();
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let built = build("values.c", &["-O0", version, "-gsplit-dwarf"]);
        assert_eq!(answers(&built, &nowhere()), expected, "{version}: files");
        // binutils' dwp crashes on version 5.
        if version == "-gdwarf-5" {
            continue;
        }
        let mut package = built.program.clone().into_os_string();
        package.push(".dwp");
        run(Command::new("dwp").arg("-e").arg(&built.program).arg("-o").arg(&package));
        remove_split_units(&built);
        assert_eq!(answers(&built, &nowhere()), expected, "{version}: package");
    }
}

#[test]
fn a_missing_split_unit_leaves_functions_and_lines() {
    let built = build("values.c", &["-O0", "-g", "-gsplit-dwarf"]);
    remove_split_units(&built);
    let program = unloaded(&built.program, &nowhere());
    let place = "stop_here".parse().expect("a place");
    let found = program.resolve(&place).expect("the symbol is still there");
    let frames = program.symbolise(found[0].address).frames;
    assert_eq!(frames[0].function.as_deref(), Some("stop_here"));
    assert_eq!(frames[0].line.as_ref().map(|line| line.line), Some(51));
}

fn remove_split_units(built: &Built) {
    for file in std::fs::read_dir(built.folder.path()).expect("the folder").flatten() {
        if file.path().extension().is_some_and(|extension| extension == "dwo") {
            std::fs::remove_file(file.path()).expect("a split unit");
        }
    }
}

/// The program as if loaded where its file says.
fn unloaded(path: &Path, files: &DebugFiles) -> Program {
    let range = Range::new(0x1000, 0x100_0000);
    Program::open([LoadedModule { path: path.into(), bias: 0, range }], files)
}

#[test]
fn compressed_sections_are_read() {
    let expected = plain();
    let mut formats = vec!["zlib", "zlib-gnu"];
    let zstd = Command::new("objcopy").arg("--help").output().expect("objcopy");
    if String::from_utf8_lossy(&zstd.stdout).contains("zstd") {
        formats.push("zstd");
    }
    for format in formats {
        let built = build("values.c", &["-O0", "-g"]);
        let option = format!("--compress-debug-sections={format}");
        run(Command::new("objcopy").arg(option).arg(&built.program));
        assert_eq!(answers(&built, &nowhere()), expected, "{format}");
    }
}

/// Moves the debug information of a program into a file of its own.
fn split_off(built: &Built, to: &Path) {
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&built.program).arg(to));
    run(Command::new("strip").arg(&built.program));
}

#[test]
fn separate_files_are_found_by_link_and_by_build_id() {
    let expected = plain();
    let built = build("values.c", &["-O0", "-g"]);
    let file = built.folder.path().join("program.debug");
    split_off(&built, &file);
    run(Command::new("objcopy")
        .arg(format!("--add-gnu-debuglink={}", file.display()))
        .arg(&built.program));
    // gdb finds the file too: it needs the symbol to stop at.
    assert_eq!(answers(&built, &nowhere()), expected);

    let built = build("values.c", &["-O0", "-g", "-Wl,--build-id"]);
    let id = symbols::Image::open(&built.program).expect("ELF").build_id().map(hex).expect("an id");
    let root = built.folder.path().join("root");
    let folder = root.join(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&folder).expect("folders");
    let kept = built.folder.path().join("kept");
    std::fs::copy(&built.program, &kept).expect("a copy");
    split_off(&built, &folder.join(format!("{}.debug", &id[2..])));
    let place = "innermost".parse().expect("a place");
    let whole = unloaded(&kept, &nowhere()).resolve(&place).expect("a function");
    let found = unloaded(&built.program, &DebugFiles::new([&root]));
    assert_eq!(found.resolve(&place).expect("a function"), whole);
    // Without the folder only the addresses are left.
    let lost = unloaded(&built.program, &nowhere());
    assert!(lost.resolve(&place).is_err());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_debug_file_of_another_build_is_refused() {
    let built = build("values.c", &["-O0", "-g"]);
    let other = build("values.c", &["-O2", "-g"]);
    let file = built.folder.path().join("program.debug");
    split_off(&built, &file);
    run(Command::new("objcopy")
        .arg(format!("--add-gnu-debuglink={}", file.display()))
        .arg(&built.program));
    split_off(&other, &file);
    let module = symbols::Module::open(&built.program, &nowhere()).expect("ELF");
    assert!(!module.has_debug_info());
}

#[test]
fn information_shared_by_dwz_is_followed() {
    let expected = plain();
    let built = build("values.c", &["-O0", "-gdwarf-4"]);
    // dwz shares what two programs have in common.
    let twin = built.folder.path().join("twin");
    std::fs::copy(&built.program, &twin).expect("a copy");
    let common = built.folder.path().join("common.debug");
    run(Command::new("dwz").arg("-m").arg(&common).arg(&built.program).arg(&twin));
    assert!(symbols::Image::open(&built.program).expect("ELF").alternate_link().is_some());
    assert_eq!(answers(&built, &nowhere()), expected);

    let built = build("values.c", &["-O0", "-g", "-flto", "-ffat-lto-objects"]);
    let found = answers(&built, &nowhere());
    for row in [4, 6, 8, 9, 10] {
        assert_eq!(found[row], expected[row]);
    }
}

#[test]
fn compressed_symbol_tables_name_the_functions_of_stripped_programs() {
    let built = build("calls.c", &["-O0", "-DKIND=0", "-static-pie"]);
    let mini: PathBuf = built.folder.path().join("mini");
    run(Command::new("objcopy")
        .args(["-S", "--keep-symbol=recurse", "--keep-symbol=stop_here"])
        .args(["--only-section=.symtab", "--only-section=.text"])
        .arg(&built.program)
        .arg(&mini));
    let symbols_only = symbols::Image::open(&mini).expect("ELF");
    assert!(symbols_only.has(".symtab"));
    run(Command::new("xz").arg("-k").arg(&mini));
    run(Command::new("strip").arg(&built.program));
    let module = symbols::Module::open(&built.program, &nowhere()).expect("ELF");
    let named = |module: &symbols::Module| {
        module.symbols().iter().find(|symbol| symbol.name == "recurse").map(|s| s.address)
    };
    assert_eq!(named(&module), None);
    run(Command::new("objcopy")
        .arg("--add-section")
        .arg(format!(".gnu_debugdata={}.xz", mini.display()))
        .arg(&built.program));
    let module = symbols::Module::open(&built.program, &nowhere()).expect("ELF");
    let address = named(&module).expect("the function's symbol");
    let frames = module.frames_at(address);
    assert_eq!(frames[0].function.as_deref(), Some("recurse"));
}

#[test]
fn a_stripped_program_still_has_its_dynamic_functions_and_stubs() {
    let built = build("calls.c", &["-O0", "-g", "-DKIND=4", "-rdynamic"]);
    run(Command::new("strip").arg(&built.program));
    let stopped = stop(&built, Stop::default());
    let program = Program::open(stopped.core.modules(), &nowhere());
    let stack = program.unwind(&stopped.core.registers, &stopped.core);
    let names: Vec<String> = stack
        .frames
        .iter()
        .filter_map(|frame| program.symbolise(frame.code()).frames.pop()?.function)
        .collect();
    assert!(names.iter().any(|name| name == "fail") && names.iter().any(|name| name == "main"));
    let scene =
        Scene { program: &program, memory: &stopped.core, stack: &stack, thread_pointer: None };
    let level = Level { frame: stack.frames.len().saturating_sub(3), inlined: 0 };
    assert_eq!(print(&scene, level, "sink"), "0");
    assert_eq!(print(&scene, level, "$rsp != 0"), "1");
}

fn print(scene: &Scene<'_>, level: Level, expression: &str) -> String {
    match scene.evaluate(level, expression) {
        Ok(value) => scene.print(&value, &Printing::default()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_program_whose_files_are_gone_is_only_addresses() {
    let path = PathBuf::from("/nonexistent/program");
    let module = LoadedModule { path, bias: 0, range: Range::new(0x1000, 0x1000) };
    let program = Program::open([module], &nowhere());
    assert!(program.problems().next().expect("a problem").to_string().contains("cannot be read"));
    let place = program.symbolise(Address(0x1234));
    assert_eq!(place.frames, []);
    assert_eq!(place.place().to_string(), "*0x1234");
}
