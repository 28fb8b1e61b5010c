//! Whose code a mapped file holds: the program's own, the C library's, another runtime's.
//!
//! Only names tell that here, as they stand in a process's mappings. A program that is linked
//! statically has all of it in one file, and a Go program is told by its sections (`symbols`).

/// Whose code a mapped file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// The C library, whose string functions read past ends on purpose, and whose heap it is.
    CLibrary,
    /// The dynamic loader; for musl that is the C library as well.
    Loader,
    /// A language's support library: mathematics, C++, exceptions, Rust, Fortran, OpenMP.
    Runtime,
    /// A sanitizer's.
    Sanitizer,
    /// What the kernel maps into every process.
    Kernel,
    /// The program's own, or a library's that is none of the above.
    Program,
}

/// Libraries of the C library that were files of their own before glibc 2.34, or still are, and hold
/// parts of it that others rely on.
const C_LIBRARY: [&str; 2] = ["libc", "libpthread"];

/// Support libraries of languages.
const RUNTIMES: [&str; 15] = [
    "libm",
    "libmvec",
    "libdl",
    "librt",
    "libstdc++",
    "libc++",
    "libc++abi",
    "libsupc++",
    "libgcc_s",
    "libunwind",
    "libatomic",
    "libgomp",
    "libgfortran",
    "libquadmath",
    "libgo",
];

const SANITIZERS: [&str; 6] = ["libasan", "libubsan", "libtsan", "liblsan", "libmsan", "libhwasan"];

impl ModuleKind {
    /// Whose code the file of this path holds.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        let name = path.rsplit('/').next().unwrap_or(path);
        if matches!(name, "[vdso]" | "[vsyscall]") || name.starts_with("linux-vdso.so") {
            return Self::Kernel;
        }
        if is_loader(name) {
            return Self::Loader;
        }
        let Some(stem) = stem(name) else { return Self::Program };
        if C_LIBRARY.contains(&stem) || stem.starts_with("libc.musl-") {
            Self::CLibrary
        } else if RUNTIMES.contains(&stem) || is_rust(stem) {
            Self::Runtime
        } else if SANITIZERS.contains(&stem) || stem.starts_with("libclang_rt.") {
            Self::Sanitizer
        } else {
            Self::Program
        }
    }

    /// Whether it is the C library or its loader.
    #[must_use]
    pub fn is_c_library(self) -> bool {
        matches!(self, Self::CLibrary | Self::Loader)
    }

    /// Whether it belongs to a language or a tool, not to whoever wrote the program.
    #[must_use]
    pub fn is_runtime(self) -> bool {
        self != Self::Program
    }
}

/// `ld-linux-x86-64.so.2`, `ld-2.31.so`, `ld-musl-x86_64.so.1`, `ld.so`.
fn is_loader(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("ld") else { return false };
    let known = ["-linux", "-musl-", ".so", "64.so"].iter().any(|start| rest.starts_with(start));
    let is_old = rest.strip_prefix('-').is_some_and(begins_with_digit);
    (known || is_old) && name.contains(".so")
}

/// The name of a shared library without its version: `libc` of `libc.so.6` and of `libc-2.31.so`.
fn stem(name: &str) -> Option<&str> {
    let (stem, behind) = name.split_once(".so")?;
    if !behind.is_empty() && !behind.starts_with('.') {
        return None;
    }
    match stem.rsplit_once('-') {
        Some((stem, version)) if begins_with_digit(version) => Some(stem),
        _ => Some(stem),
    }
}

/// `libstd-0123456789abcdef`: the compiler's hash follows.
fn is_rust(stem: &str) -> bool {
    let hash = stem.strip_prefix("libstd-");
    stem == "libstd" || hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether a file lies where distributions put theirs.
#[must_use]
pub fn is_system_file(path: &str) -> bool {
    const FOLDERS: [&str; 5] = ["/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/"];
    FOLDERS.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::ModuleKind::{self, CLibrary, Kernel, Loader, Program, Runtime, Sanitizer};

    #[test]
    fn files_are_told_apart_by_their_names() {
        let rows = [
            // glibc since 2.34, and before.
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", CLibrary),
            ("/lib/x86_64-linux-gnu/libc-2.31.so", CLibrary),
            ("/lib/x86_64-linux-gnu/libpthread-2.31.so", CLibrary),
            ("/lib/libpthread.so.0", CLibrary),
            ("/lib64/ld-linux-x86-64.so.2", Loader),
            ("/lib/x86_64-linux-gnu/ld-2.31.so", Loader),
            ("/lib/ld.so", Loader),
            ("/lib/x86_64-linux-gnu/libm-2.31.so", Runtime),
            ("/lib/x86_64-linux-gnu/libm.so.6", Runtime),
            ("/lib/libmvec.so.1", Runtime),
            ("/lib/x86_64-linux-gnu/libdl-2.31.so", Runtime),
            // musl, whose loader is its C library.
            ("/lib/ld-musl-x86_64.so.1", Loader),
            ("/lib/libc.musl-x86_64.so.1", CLibrary),
            ("/usr/lib/musl/lib/libc.so", CLibrary),
            // Other languages.
            ("/usr/lib/libstdc++.so.6.0.30", Runtime),
            ("/usr/lib/llvm-14/lib/libc++.so.1.0", Runtime),
            ("/usr/lib/libc++abi.so.1", Runtime),
            ("/lib/x86_64-linux-gnu/libgcc_s.so.1", Runtime),
            ("/usr/lib/libgomp.so.1", Runtime),
            ("/usr/lib/libgo.so.21", Runtime),
            ("/rust/lib/libstd-8389830094602f5a.so", Runtime),
            // Sanitizers.
            ("/usr/lib/x86_64-linux-gnu/libasan.so.8.0.0", Sanitizer),
            ("/usr/lib/x86_64-linux-gnu/libtsan.so.2", Sanitizer),
            ("/usr/lib/clang/14/lib/linux/libclang_rt.asan-x86_64.so", Sanitizer),
            // The kernel.
            ("[vdso]", Kernel),
            ("[vsyscall]", Kernel),
            ("linux-vdso.so.1", Kernel),
            // What only looks like one of them.
            ("/home/me/ld-script", Program),
            ("/home/me/ld-linux", Program),
            ("/usr/lib/libc-client.so.2007e.0", Program),
            ("/usr/lib/libcrypt.so.1", Program),
            ("/usr/lib/libmagic.so.1", Program),
            ("/usr/lib/libstdcpp.so.1", Program),
            ("/usr/lib/libstd-tools.so.1", Program),
            ("/home/me/libc.sock", Program),
            ("/home/libc.so.6/program", Program),
            ("/usr/bin/ld", Program),
            ("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6", Program),
            ("", Program),
            // A file that was replaced while the program ran.
            ("/usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)", CLibrary),
        ];
        for (path, kind) in rows {
            assert_eq!(ModuleKind::of(path), kind, "{path}");
        }
    }

    #[test]
    fn the_loader_counts_as_the_c_library_and_a_sanitizer_does_not() {
        assert!(Loader.is_c_library() && CLibrary.is_c_library());
        assert!(!Sanitizer.is_c_library() && !Runtime.is_c_library() && !Program.is_c_library());
        assert!(Sanitizer.is_runtime() && !Program.is_runtime());
    }
}
