//! Names as the programmer wrote them: Rust and C++ demangled, everything else as it is.

use cpp_demangle::{DemangleOptions, ParseOptions};

/// Longer mangled names are left alone: they come from broken or hostile files.
const LONGEST: usize = 1 << 14;
/// How deep a mangled C++ name may nest before it is left alone.
const DEEPEST: u32 = 96;

/// The name of a function or object, demangled without parameters and hashes.
#[must_use]
pub fn demangle(name: &str) -> String {
    if name.len() > LONGEST {
        return name.into();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z") || name.starts_with("__Z") || name.starts_with("_GLOBAL_") {
        return cpp(name).unwrap_or_else(|| name.into());
    }
    name.into()
}

fn cpp(name: &str) -> Option<String> {
    let limits = ParseOptions::default().recursion_limit(DEEPEST);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &limits).ok()?;
    let options = DemangleOptions::default().no_params().no_return_type().recursion_limit(DEEPEST);
    symbol.demangle_with_options(&options).ok()
}

/// Whether `wanted` names `full`: all of it, or its last `::` parts, template arguments and
/// parameters aside (`push` and `queue::push` both name `lib::queue<int>::push`).
#[must_use]
pub fn names(wanted: &str, full: &str) -> bool {
    if wanted == full {
        return true;
    }
    let (wanted, full) = (without_arguments(wanted), without_arguments(full));
    full == wanted
        || full.strip_suffix(wanted.as_str()).is_some_and(|before| before.ends_with("::"))
}

/// The name without `<…>` and `(…)`; operators keep their own signs.
fn without_arguments(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut depth = 0usize;
    for (at, sign) in name.char_indices() {
        let operator = out.ends_with("operator")
            || ["operator<", "operator>", "operator(", "operator-"]
                .iter()
                .any(|o| out.ends_with(o));
        match sign {
            '<' | '(' if !operator && !(depth == 0 && (at == 0 || out.ends_with("::"))) => {
                depth += 1;
            }
            '>' | ')' if !operator && depth > 0 => depth -= 1,
            _ if depth == 0 => out.push(sign),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_were_written() {
        let cases = [
            ("main", "main"),
            ("_ZN3foo3barEv", "foo::bar"),
            ("_ZN5queueIiE4pushEi", "queue<int>::push"),
            ("_ZN4core3fmt5Write9write_str17h0123456789abcdefE", "core::fmt::Write::write_str"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_Zbroken", "_Zbroken"),
        ];
        for (mangled, expected) in cases {
            assert_eq!(demangle(mangled), expected);
        }
    }

    #[test]
    fn last_parts_name_the_whole() {
        for (wanted, full, expected) in [
            ("push", "lib::queue<int>::push", true),
            ("queue::push", "lib::queue<int>::push", true),
            ("ush", "lib::queue<int>::push", false),
            ("main", "main", true),
            ("operator<", "a::operator<", true),
            ("operator()", "a::operator()", true),
            ("new", "<alloc::Vec<T> as Make>::new", true),
        ] {
            assert_eq!(names(wanted, full), expected, "{wanted} {full}");
        }
    }
}
