//! What a diversion wrote otherwise than the recorded process.

use serde::Serialize;

/// The first line of output that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// 1 is standard output, 2 standard error.
    pub stream: u8,
    /// Which line, counted from where the diversion began.
    pub line: usize,
    /// The line of the recording; nothing if it wrote no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// The line of the diversion; nothing if it wrote no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diverted: Option<String>,
}

/// The first difference, of standard output before standard error.
pub fn first(recorded: &[(u8, Vec<u8>)], diverted: &[(u8, Vec<u8>)]) -> Option<Difference> {
    [1, 2].into_iter().find_map(|stream| {
        let all = |pieces: &[(u8, Vec<u8>)]| -> Vec<u8> {
            let own = pieces.iter().filter(|(of, _)| *of == stream);
            own.flat_map(|(_, bytes)| bytes.iter().copied()).collect()
        };
        of_stream(stream, &all(recorded), &all(diverted))
    })
}

fn of_stream(stream: u8, recorded: &[u8], diverted: &[u8]) -> Option<Difference> {
    if recorded == diverted {
        return None;
    }
    let line = recorded.iter().zip(diverted).take_while(|(one, other)| one == other);
    let line = line.filter(|(byte, _)| **byte == b'\n').count();
    let text = |bytes: &[u8]| {
        let found = bytes.split(|byte| *byte == b'\n').nth(line).filter(|line| !line.is_empty());
        found.map(|line| String::from_utf8_lossy(line).into_owned())
    };
    Some(Difference { stream, line: line + 1, recorded: text(recorded), diverted: text(diverted) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        recorded: &str,
        diverted: &str,
        expected: Option<(usize, Option<&str>, Option<&str>)>,
    ) {
        let one = |text: &str| vec![(1, text.as_bytes().to_vec())];
        let found = first(&one(recorded), &one(diverted));
        let found = found.map(|it| (it.line, it.recorded, it.diverted));
        let own = |text: Option<&str>| text.map(str::to_owned);
        assert_eq!(found, expected.map(|(line, then, now)| (line, own(then), own(now))));
    }

    #[test]
    fn the_first_line_that_differs_is_told() {
        check("a\nb\n", "a\nb\n", None);
        check("a\nb\n", "a\nc\n", Some((2, Some("b"), Some("c"))));
        check("a\n", "a\nb\n", Some((2, None, Some("b"))));
        check("a\nb\n", "", Some((1, Some("a"), None)));
        check("total 1", "total 12", Some((1, Some("total 1"), Some("total 12"))));
    }

    #[test]
    fn pieces_are_put_together_before_they_are_compared() {
        let pieces = |text: &[&str]| -> Vec<(u8, Vec<u8>)> {
            text.iter().map(|text| (1, text.as_bytes().to_vec())).collect()
        };
        assert_eq!(first(&pieces(&["a", "b\n"]), &pieces(&["ab\n"])), None);
    }
}
