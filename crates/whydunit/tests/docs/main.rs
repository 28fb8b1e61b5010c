//! Every command line in README.md and docs/ is run, and must print what the page says, unless a comment in the page
//! gives the reason why not ([`page`]). Forms of command lines, and commands in running text, must name commands and
//! options that there are. `BLESS=1` writes the pages anew.

mod links;
mod page;
mod steady;
#[path = "../support/mod.rs"]
mod support;

use page::{Block, Page, Treatment};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use steady::{is_as_expected, is_elision, steady};

/// What was done with the commands of all pages.
#[derive(Default)]
struct Counts {
    pages: AtomicUsize,
    compared: AtomicUsize,
    only_run: AtomicUsize,
    not_run: AtomicUsize,
}

fn pages() -> Vec<PathBuf> {
    let mut all = vec![support::root().join("README.md")];
    let mut folders = vec![support::root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "md") => all.push(path),
                false => {}
            }
        }
    }
    all.sort();
    all
}

#[test]
fn every_command_line_of_the_pages_is_run() {
    let (counts, wrong) = (Counts::default(), Mutex::new(Vec::new()));
    let waiting = Mutex::new(pages());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(path) = waiting.lock().expect("whole").pop() else { break };
                    let found = check(&path, &counts);
                    wrong.lock().expect("whole").extend(found);
                }
            });
        }
    });
    let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    println!(
        "{} pages: {} commands run and compared, {} run, {} not run",
        of(&counts.pages),
        of(&counts.compared),
        of(&counts.only_run),
        of(&counts.not_run)
    );
    let wrong = wrong.into_inner().expect("whole");
    assert!(wrong.is_empty(), "{}\nBLESS=1 writes pages anew", wrong.join("\n"));
}

/// Runs the examples of a page in a folder of their own; what is wrong with it.
fn check(path: &Path, counts: &Counts) -> Vec<String> {
    let name = path.strip_prefix(support::root()).expect("a page of ours").display().to_string();
    let text = std::fs::read_to_string(path).expect("a page");
    let page = Page::read(&text);
    let folder = tempfile::tempdir().expect("a folder");
    for need in &page.needs {
        let from = support::root().join(need);
        let to = folder.path().join(from.file_name().expect("a name"));
        std::fs::copy(&from, to).unwrap_or_else(|error| panic!("{name} needs {need}: {error}"));
    }
    counts.pages.fetch_add(1, Ordering::Relaxed);
    let unanswered = in_running_text(&page, folder.path(), counts);
    let (mut wrong, mut blessed, mut from, mut ran) = (Vec::new(), String::new(), 0, false);
    let mut promises = false;
    for block in &page.blocks {
        promises |= matches!(block.kind, "console" | "synopsis");
        if block.kind != "console" {
            wrong.extend(is_no_example(block).map(|words| format!("{name}: {words}")));
            continue;
        }
        let told = run(block, &page, folder.path(), counts);
        ran |= !matches!(block.treatment, Treatment::NotRun(_));
        match told {
            Ok(()) => {}
            Err(told) => {
                blessed += &text[from..block.at];
                blessed += &told;
                from = block.at + block.body.len();
                wrong.push(format!("{name}: expected\n{}\nbut got\n{told}", block.body));
            }
        }
    }
    wrong.extend(unanswered.into_iter().map(|words| format!("{name}: {words}")));
    if promises && !ran {
        wrong.push(format!("{name} has command lines, and none of them is run"));
    }
    if std::env::var_os("BLESS").is_some() && !blessed.is_empty() {
        std::fs::write(path, blessed + &text[from..]).expect("written");
    }
    wrong
}

/// Runs the commands in running text that are about the page's program; those that give no answer.
fn in_running_text(page: &Page<'_>, folder: &Path, counts: &Counts) -> Vec<String> {
    let Some(source) = page.prog else { return Vec::new() };
    let source = support::root().join(source);
    std::fs::copy(&source, folder.join("prog.c")).expect("copied");
    let (said, codes) = transcript(&["cc -g -O0 -o prog prog.c"], folder);
    assert_eq!(codes, [0], "{said}");
    let about =
        page.inline.iter().filter(|code| code.starts_with("whydunit ") && code.contains("./prog "));
    let mut wrong = Vec::new();
    for code in about {
        let (said, codes) = transcript(&[code.replace('…', "").trim()], folder);
        counts.only_run.fetch_add(1, Ordering::Relaxed);
        if !matches!(codes.as_slice(), [0 | 1 | 3]) {
            wrong.push(said);
        }
    }
    wrong
}

/// Runs a block; what it printed if that is not as expected.
fn run(block: &Block<'_>, page: &Page<'_>, folder: &Path, counts: &Counts) -> Result<(), String> {
    let commands = block.commands();
    let count = match block.treatment {
        Treatment::Compared => &counts.compared,
        Treatment::Run(_) => &counts.only_run,
        Treatment::NotRun(_) => &counts.not_run,
    };
    count.fetch_add(commands.len(), Ordering::Relaxed);
    match block.treatment {
        Treatment::NotRun(_) => Ok(()),
        Treatment::Compared => {
            let got = transcript(&commands, folder).0;
            let (expected, shown) =
                (steady(block.body, page.exact_counts), steady(&got, page.exact_counts));
            if is_as_expected(&expected, &shown) { Ok(()) } else { Err(got) }
        }
        Treatment::Run(code) => {
            let (got, codes) = transcript(&commands, folder);
            let (last, before) = codes.split_last().expect("a command");
            let as_expected = *last == code && before.iter().all(|code| *code == 0);
            if as_expected { Ok(()) } else { Err(format!("{got}(exit codes {codes:?})\n")) }
        }
    }
}

/// Commands with what they print, as a terminal would show them, and their exit codes.
fn transcript(commands: &[&str], folder: &Path) -> (String, Vec<i32>) {
    let tool = Path::new(env!("CARGO_BIN_EXE_whydunit"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tool.parent().expect("a folder").display());
    // The examples write to a home of their own; a toolchain stays where it is.
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let toolchain = std::env::var_os("RUSTUP_HOME").map_or(home.join(".rustup"), PathBuf::from);
    let (mut text, mut codes) = (String::new(), Vec::new());
    for words in commands {
        let words_run = format!("{{ {words}\n}} 2>&1");
        let output = Command::new("sh")
            .args(["-c", &words_run])
            .current_dir(folder)
            .env("PATH", &path)
            .env("HOME", folder)
            .env("RUSTUP_HOME", &toolchain)
            .env_remove("CC")
            .env_remove("RUST_BACKTRACE")
            .env_remove("LD_LIBRARY_PATH")
            .stdin(std::process::Stdio::null())
            .output()
            .expect("a shell");
        let _ = write!(text, "$ {words}\n{}", String::from_utf8_lossy(&output.stdout));
        codes.push(output.status.code().unwrap_or(-1));
    }
    (text, codes)
}

/// What is wrong with a block that is no example.
fn is_no_example(block: &Block<'_>) -> Option<String> {
    let first = block.body.lines().next().unwrap_or_default();
    if block.kind.is_empty() {
        return Some(format!("the block `{first}` does not say what it is"));
    }
    let is_command = |line: &str| line.starts_with("$ ") || line.starts_with("whydunit ");
    let hides = block.kind != "synopsis" && block.body.lines().any(is_command);
    hides.then(|| format!("the block `{first}` has commands, and is no `console`"))
}

/// Commands and options that pages name outside of examples: there is every one of them.
#[test]
fn every_option_that_a_page_names_is_there() {
    let mut named: BTreeSet<(String, String)> = BTreeSet::new();
    for path in pages() {
        let text = std::fs::read_to_string(&path).expect("a page");
        let page = Page::read(&text);
        let forms = page.blocks.iter().filter(|block| block.kind == "synopsis");
        let forms = forms.flat_map(|block| block.body.lines().map(str::to_owned));
        for line in forms.chain(page.inline) {
            let (command, options) = named_in(&line);
            named.extend(options.into_iter().map(|option| (command.clone(), option)));
        }
    }
    assert!(named.len() > 20, "{named:?}");
    for (command, option) in named {
        let mut words: Vec<&str> = command.split(' ').collect();
        let with_value = format!("{option}=x");
        words.push(if option.is_empty() { "--help" } else { &with_value });
        let said = support::errors(&support::run(&words));
        let unknown = ["unexpected argument", "unrecognized subcommand"];
        assert!(!unknown.iter().any(|words| said.contains(words)), "{command} {option}: {said}");
    }
}

/// The command of a line that begins with the tool's name, and its options; one is empty, for the command itself.
fn named_in(line: &str) -> (String, Vec<String>) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["whydunit", command, rest @ ..] = words.as_slice() else { return Default::default() };
    if !command.chars().all(|letter| letter.is_ascii_lowercase()) {
        return Default::default();
    }
    let inner = ["model", "generate"].contains(command).then(|| rest.first()).flatten();
    let command = inner.map_or((*command).to_owned(), |inner| format!("{command} {inner}"));
    let own = rest.iter().take_while(|word| **word != "--");
    let option = |word: &&str| {
        let word = word.trim_matches(|letter| "[]".contains(letter));
        let name = word.split('=').next().unwrap_or_default();
        name.starts_with("--").then(|| name.to_owned())
    };
    (command, own.filter_map(option).chain([String::new()]).collect())
}

#[test]
fn options_are_found_in_lines() {
    let (command, options) = named_in("whydunit run [--json] --rules a,b -- ./prog --its-own");
    assert_eq!(
        (command.as_str(), options),
        ("run", ["--json", "--rules", ""].map(String::from).to_vec())
    );
    assert_eq!(named_in("whydunit model info MODEL").0, "model info");
    assert_eq!(named_in("valgrind --tool=none").1, Vec::<String>::new());
    assert!(is_elision("   ..."));
}
