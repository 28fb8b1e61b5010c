//! Tells the version's commit, where there is a repository to ask; and refuses to build without the flags by which the
//! tool is linked at its place (`.cargo/config.toml`): cargo reads these only from the folder it is started in.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// What the runner relies on, as `.cargo/config.toml` has it.
const FLAGS: [&str; 3] = ["+crt-static", "relocation-model=static", "--image-base=0x70000000"];

fn check_flags() {
    let given = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if !FLAGS.iter().all(|flag| given.contains(flag)) {
        println!(
            "cargo::error=whydunit is linked statically at a fixed place, by the flags in .cargo/config.toml of its \
             repository, and they are not in force: start cargo inside of the repository, or add \
             `--config REPOSITORY/.cargo/config.toml`; RUSTFLAGS must not be set, as it takes their place"
        );
    }
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    check_flags();
    let commit = git(&["rev-parse", "--short=10", "HEAD"]);
    let version = env!("CARGO_PKG_VERSION");
    let told = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=WHYDUNIT_VERSION={told}");
    // A commit moves what HEAD stands for, or packs it away.
    let reference = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD".to_owned()].into_iter().chain(reference) {
        if let Some(path) = git(&["rev-parse", "--git-path", &name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
