//! Names of source files as a reader would write them.

use std::path::Path;

/// The name of a file, without the current folder or the commit of Rust's own library.
pub fn shortened(file: &str) -> String {
    if let Some((_, below)) = file.strip_prefix("/rustc/").and_then(|rest| rest.split_once('/')) {
        return below.to_owned();
    }
    let here = std::env::current_dir().unwrap_or_default();
    match Path::new(file).strip_prefix(&here) {
        Ok(below) if !below.as_os_str().is_empty() => below.display().to_string(),
        _ => file.to_owned(),
    }
}
