//! Input that is not source code, or no longer: passed over with a reason, never a crash.

use correlate::library::Library;
use correlate::tree::Silent;
use correlate::{Analysis, Error, Request, analyse};
use proptest::prelude::*;
use std::os::unix::fs::symlink;
use std::path::Path;

fn analysed(folder: &Path) -> Result<Analysis, Error> {
    let request = Request {
        roots: vec![folder.to_path_buf()],
        library: Library::builtin(),
        max_file_size: 32 << 20,
        ..Request::default()
    };
    analyse(&request, &Silent)
}

#[test]
fn what_cannot_be_used_is_named_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("good.c"), "struct S { int a; }; void f(struct S *s) { s->a = 1; }").unwrap();
    std::fs::write(at("binary.c"), b"\x7fELF\0\0\0\0").unwrap();
    std::fs::write(
        at("generated.c"),
        "static int a_table_entry = 12;\n".repeat(50 * 1024 * 1024 / 31 + 1),
    )
    .unwrap();
    std::fs::write(at("unbalanced.c"), "void g(void) { { { if (x) } } } } ) ( \" ' /* ").unwrap();
    symlink(folder.path(), at("loop")).unwrap();
    symlink(at("itself.c"), at("itself.c")).unwrap();
    std::fs::create_dir_all(at("one/two")).unwrap();
    symlink(at("one"), at("one/two/one")).unwrap();
    symlink(at("nowhere"), at("dangling.c")).unwrap();
    let analysis = analysed(folder.path()).expect("there is one good file");
    let reason = |name: &str| {
        let found = analysis.tree.skipped.iter().find(|it| it.path.ends_with(name));
        found.map_or(String::new(), |it| it.reason.clone())
    };
    assert_eq!(reason("binary.c"), "a binary file");
    assert!(reason("generated.c").contains("50 MiB"), "{}", reason("generated.c"));
    for name in ["loop", "one/two/one"] {
        assert!(reason(name).contains("leads back"), "{name}: {}", reason(name));
    }
    assert!(reason("itself.c").contains("symbolic links"), "{}", reason("itself.c"));
    assert!(reason("dangling.c").contains("No such file"), "{}", reason("dangling.c"));
    assert_eq!(analysis.tree.resolution.resolved, 1);
}

#[test]
fn an_empty_tree_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("README"), "nothing here").unwrap();
    let error = analysed(folder.path()).err().expect("nothing to analyse");
    assert!(error.to_string().starts_with("no C or C++ source file in"), "{error}");
    assert!(matches!(analysed(Path::new("/no/such/folder")), Err(Error::Missing(..))));
}

#[test]
fn nesting_without_end_is_cut_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let depth = 3_000;
    let deep = [
        (
            "parens.c",
            format!("void f(void) {{ x = {}1{}; }}", "(".repeat(depth), ")".repeat(depth)),
        ),
        ("blocks.c", format!("void f(void) {}{}", "{".repeat(depth), "}".repeat(depth))),
        ("fields.c", format!("void f(struct s *p) {{ p{} = 1; }}", "->p".repeat(depth))),
        ("structs.c", format!("{}{}", "struct s { struct t ".repeat(depth), "} x;".repeat(depth))),
        ("stars.c", format!("int {}p;", "*".repeat(depth))),
        ("macro.c", format!("#define M(x) {}x{}", "(".repeat(depth), ")".repeat(depth))),
    ];
    for (name, text) in deep {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    assert!(analysed(folder.path()).is_ok());
}

/// Pieces that a C parser has an opinion about, in any order.
fn soup() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "struct S ",
        "{",
        "}",
        "(",
        ")",
        ";",
        "int ",
        "a",
        "->b",
        ".c",
        "=",
        "++",
        "*",
        "&",
        "[",
        "]",
        ",",
        "#define M(x) ",
        "#if X\n",
        "#else\n",
        "#endif\n",
        "\n",
        "\"",
        "'",
        "/*",
        "*/",
        "//",
        "\\\n",
        "typedef ",
        "if ",
        "for ",
        "sizeof ",
        "void f(struct S *a) {",
        "class K : ",
        "#include \"",
        "memset",
        "container_of(",
        "static ",
        "::",
        "<",
        ">",
        "R\"x(",
        "\u{e9}",
        "0",
    ];
    let piece = proptest::sample::select(PIECES);
    proptest::collection::vec(piece, 0..120).prop_map(|parts| parts.concat())
}

fn survives(name: &str, text: &[u8]) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(name), text).unwrap();
    prop_assert!(analysed(folder.path()).is_ok());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn token_soup_is_survived(text in soup(), cpp in any::<bool>()) {
        survives(if cpp { "f.cpp" } else { "f.c" }, text.as_bytes())?;
    }

    #[test]
    fn bytes_are_survived(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        survives("f.c", &text)?;
    }

    /// Real programs with a piece cut out and another doubled.
    #[test]
    fn damaged_programs_are_survived(cut in any::<(u16, u8)>(), twice in any::<(u16, u8)>(), which in 0usize..3) {
        let program = [
            &include_bytes!("programs/excused.c")[..],
            include_bytes!("programs/db_length.cpp"),
            include_bytes!("programs/copies.c"),
        ][which];
        let mut text = program.to_vec();
        let span = |(at, length): (u16, u8), of: usize| {
            let at = at as usize % of;
            at..(at + length as usize).min(of)
        };
        text.drain(span(cut, text.len()));
        let piece = text[span(twice, text.len())].to_vec();
        let at = cut.0 as usize % text.len();
        text.splice(at..at, piece);
        survives(["f.c", "f.cpp", "f.h"][which], &text)?;
    }
}
