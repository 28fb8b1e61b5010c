//! Whose source a file is: the program's own authors', or that of a language, a library or the system, which
//! a reader wants to see as one call.
//!
//! Only paths tell that, as compilers write them down.

/// How the paths of others begin: the system's headers and libraries, the C library's own relative names, the
/// standard libraries of Rust and Go.
const FOREIGN_STARTS: [&str; 15] = [
    "/usr/include/",
    "/usr/lib/",
    "/usr/local/include/",
    "/usr/local/lib/",
    "/usr/local/go/",
    "/rustc/",
    "/rust/deps/",
    "/build/reproducible-path/",
    "./",
    "../sysdeps/",
    "library/core/src/",
    "library/alloc/src/",
    "library/std/src/",
    "runtime/",
    "/nix/store/",
];

/// What stands somewhere in the paths of others: toolchains and dependencies that were fetched.
const FOREIGN_PARTS: [&str; 5] =
    ["/lib/rustlib/", "cargo/registry/", "cargo/git/", "/go/src/runtime/", "/go/pkg/mod/"];

/// Whether a source file is the program's own, as far as its path tells.
#[must_use]
pub fn is_own_source(file: &str) -> bool {
    !FOREIGN_STARTS.iter().any(|start| file.starts_with(start))
        && !FOREIGN_PARTS.iter().any(|part| file.contains(part))
        && !is_distribution_build(file)
}

/// Whether a path is that of a package as Debian's machines build it: `/build/NAME-SUFFIX/…`, with a suffix of six
/// letters and digits. Others build in `/build`, too.
fn is_distribution_build(file: &str) -> bool {
    let folder = file.strip_prefix("/build/").and_then(|rest| rest.split_once('/'));
    let suffix = folder.and_then(|(folder, _)| folder.rsplit_once('-')).map(|(_, suffix)| suffix);
    suffix.is_some_and(|suffix| {
        suffix.len() == 6 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::is_own_source;

    #[test]
    fn languages_libraries_and_the_system_are_not_the_programs_own() {
        for own in [
            "/home/me/a.c",
            "src/main.rs",
            "/work/library/x.c",
            "a.c",
            "/srv/go/src/a.go",
            "/build/shop/till.c",
            "/build/till-1.2/till.c",
            "/usr/local/src/till.c",
        ] {
            assert!(is_own_source(own), "{own}");
        }
        for foreign in [
            "/usr/include/c++/12/bits/stl_vector.h",
            "/rustc/5980/library/core/src/option.rs",
            "library/core/src/mem/mod.rs",
            "/home/me/.cargo/registry/src/x/lib.rs",
            "/opt/rust/lib/rustlib/src/rust/library/core/src/option.rs",
            "./stdlib/./stdlib/exit.c",
            "/usr/local/go/src/runtime/panic.go",
            "/usr/local/cargo/registry/src/x/lib.rs",
            "/rust/deps/hashbrown-0.16.1/src/map.rs",
            "/build/glibc-6iIyft/glibc-2.36/stdlib/exit.c",
            "/build/reproducible-path/zlib-1.3/inflate.c",
        ] {
            assert!(!is_own_source(foreign), "{foreign}");
        }
    }
}
