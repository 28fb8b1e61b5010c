//! Command lines as a shell would take them, on one line whatever is in them.

/// A command line.
pub fn line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|text| word(text.as_ref())).collect::<Vec<_>>().join(" ")
}

/// A word; quoted where a shell would take it for something else.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into();
    }
    let visible: String = text.chars().flat_map(|c| visible(c).collect::<Vec<_>>()).collect();
    format!("'{}'", visible.replace('\'', "'\\''"))
}

fn visible(c: char) -> Box<dyn Iterator<Item = char>> {
    if c.is_control() { Box::new(c.escape_default()) } else { Box::new(std::iter::once(c)) }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn words_are_quoted_where_they_must() {
        assert_eq!(line(["sh", "-c", "exit 3"]), "sh -c 'exit 3'");
        assert_eq!(line(["a.b=c", "", "it's", "x\ny"]), r"a.b=c '' 'it'\''s' 'x\ny'");
    }
}
