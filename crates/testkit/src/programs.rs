//! The small programs that oracles and engine are compared on (`tests/programs/exact`): finding
//! and building them. Each says in its first line, after `build:`, how.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources in `folder` that are programs, by name.
///
/// # Errors
/// When the folder cannot be read.
pub fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?
    {
        let path = entry?.path();
        if compiler(&path).is_some() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Where the repository keeps its exactness programs.
#[must_use]
pub fn exact() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/exact")
}

/// Builds one source into `folder`; returns the program.
///
/// # Errors
/// When the source does not say how, or the compiler fails.
pub fn build(source: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let text =
        std::fs::read_to_string(source).with_context(|| format!("reading {}", source.display()))?;
    let first = text.lines().next().unwrap_or_default();
    let Some((_, flags)) = first.split_once("build:") else {
        bail!("{}: the first line does not say how to build it", source.display());
    };
    let compiler = compiler(source).context("not a kind of source that can be built")?;
    let name = source.file_name().context("a file has a name")?.to_string_lossy();
    let output = folder.join(name.replace('.', "_"));
    let result = Command::new(compiler)
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&output)
        .arg(source)
        .output()
        .with_context(|| format!("running {compiler}"))?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        bail!("{compiler} failed on {}:\n{said}", source.display());
    }
    Ok(output)
}

fn compiler(source: &Path) -> Option<&'static str> {
    match source.extension()?.to_str()? {
        "c" | "s" => Some("gcc"),
        "cpp" => Some("g++"),
        "rs" => Some("rustc"),
        _ => None,
    }
}
