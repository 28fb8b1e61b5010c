//! Which folders of a tree are analysed.

use correlate::sources::{Exclusions, find};

/// The files that are analysed, and those that only lend their declarations.
fn found(patterns: &[&str], all_folders: bool) -> (Vec<String>, Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [
        "deps/a.c",
        "src/b.c",
        "src/vendor/x/c.c",
        ".pc/d.c",
        "tests/e.c",
        "tests/deep/f.c",
        "g_test.c",
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("a folder");
        std::fs::write(path, "int x;").expect("a file");
    }
    let patterns = patterns.iter().map(ToString::to_string).collect();
    let exclusions = Exclusions { patterns, all_folders };
    let sources = find(&[folder.path().to_path_buf()], &[], &exclusions);
    let names = |lends: bool| {
        let files = sources.files.iter().filter(|it| it.declarations_only == lends);
        files.map(|it| it.shown.clone()).collect()
    };
    let skipped = sources.skipped.iter().map(|it| it.path.clone()).collect();
    (names(false), names(true), skipped)
}

#[test]
fn hidden_folders_are_left_out_and_vendored_ones_lend_their_declarations() {
    let (analysed, lend, skipped) = found(&[], false);
    assert_eq!(analysed, ["g_test.c", "src/b.c", "tests/deep/f.c", "tests/e.c"]);
    assert_eq!(lend, ["deps/a.c", "src/vendor/x/c.c"]);
    assert_eq!(skipped, [".pc", "deps", "src/vendor"]);
    let (analysed, lend, skipped) = found(&[], true);
    assert_eq!((analysed.len(), lend.len(), skipped.len()), (7, 0, 0));
}

#[test]
fn patterns_name_files_and_folders() {
    let analysed = |pattern: &str| found(&[pattern], true).0;
    assert_eq!(analysed("tests").len(), 5);
    assert_eq!(analysed("tests/").len(), 5);
    assert_eq!(analysed("tests/deep").len(), 6);
    assert_eq!(analysed("deep").len(), 6);
    assert_eq!(analysed("*_test.c").len(), 6);
    assert_eq!(analysed("*").len(), 0);
    assert_eq!(analysed("est").len(), 7, "a part of a name is no name");
}
