//! Lines that fit into so many columns: sentences go on in another line, names are cut in their middle, source
//! at its end, paths are folded. [`page`] does so with a whole answer, just before a terminal shows it.

/// How much further in a line goes on.
const HANGING: usize = 4;

/// A sentence in as many lines as it takes, the later ones further in than the first.
pub fn wrapped(text: &str, columns: usize) -> String {
    let indent = text.len() - text.trim_start().len();
    let mut lines: Vec<String> = vec![" ".repeat(indent)];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("one at least");
        let begun = !last.trim().is_empty();
        if begun && width(last) + 1 + width(word) > columns {
            lines.push(format!("{}{word}", " ".repeat(indent + HANGING)));
        } else {
            if begun {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n")
}

/// A whole answer for a terminal of so many columns: what is wider goes on in another line, its paths folded first.
/// Colours take no room.
#[must_use]
pub fn page(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        if width(&without_colours(line)) <= columns {
            out += line;
        } else {
            out += &wrapped_coloured(&folded(line), columns);
        }
        out += end;
    }
    out
}

/// A line with its long paths folded: the first folder and the last two names tell most.
fn folded(line: &str) -> String {
    let fold = |word: &str| {
        let parts: Vec<&str> = word.split('/').collect();
        match parts.as_slice() {
            [root, first, .., folder, file] if parts.len() > 5 && width(word) > LONG_PATH => {
                format!("{root}/{first}/…/{folder}/{file}")
            }
            _ => word.to_owned(),
        }
    };
    line.split(' ').map(fold).collect::<Vec<_>>().join(" ")
}

/// Columns from which on a path is folded where there is no room.
const LONG_PATH: usize = 40;

/// The same as [`wrapped`], where spaces inside of the line stay as they are.
fn wrapped_coloured(line: &str, columns: usize) -> String {
    let indent = line.chars().take_while(|letter| *letter == ' ').count();
    let (mut out, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let wide = width(&without_colours(word.trim_end()));
        if used > indent && used + wide > columns {
            out.truncate(out.trim_end_matches(' ').len());
            out += "\n";
            out += &" ".repeat(indent + HANGING);
            used = indent + HANGING;
        }
        out += word;
        used += width(&without_colours(word));
    }
    out
}

/// The text without escape sequences.
fn without_colours(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// A line whose end is left out if it is too long.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A name whose middle is left out if it is too long: what it begins and ends with tells most.
pub fn abridged(name: &str, columns: usize) -> String {
    let length = width(name);
    if length <= columns || columns < 3 {
        return name.to_owned();
    }
    let end = (columns - 1) / 2;
    let begin = columns - 1 - end;
    let head = name.chars().take(begin).chain(['…']);
    head.chain(name.chars().skip(length - end)).collect()
}

/// Columns that a text takes, of characters that take one each.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fits_its_columns_and_keeps_its_colours() {
        let text = "  at \x1b[1ma.c:3\x1b[0m where one = 1, two = 2, three = 3\nshort   line\n";
        let fitted = page(text, 24);
        assert_eq!(
            fitted,
            "  at \x1b[1ma.c:3\x1b[0m where one =\n      1, two = 2, three\n      = 3\nshort   line\n"
        );
        assert_eq!(page(text, 200), text);
        let path = "  at /home/someone/projects/whydunit/crates/report/src/fit.rs:12 (page)\n";
        assert_eq!(page(path, 70), "  at /home/…/src/fit.rs:12 (page)\n");
        assert_eq!(page(path, 200), path);
    }

    #[test]
    fn what_is_too_long_is_wrapped_or_cut() {
        let text = "  one two three four";
        assert_eq!(wrapped(text, 11), "  one two\n      three\n      four");
        assert_eq!(wrapped(text, 40), text);
        assert_eq!(wrapped("  averyveryverylongword", 10), "  averyveryverylongword");
        assert_eq!(cut("int x = 1;", 6), "int x…");
        assert_eq!(abridged("std::vector<int>::push_back", 13), "std::v…h_back");
        for columns in 3..30 {
            assert!(width(&abridged("std::vector<int>::push_back", columns)) <= columns);
        }
    }
}
