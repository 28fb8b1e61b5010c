//! Near names for a name that does not exist.

/// The names among `known` closest to `wanted`, best first; none that is far off.
pub fn near<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    const MOST: usize = 4;
    let mut found: Vec<(usize, &str)> =
        known.into_iter().filter_map(|name| Some((distance(wanted, name)?, name))).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, name)| name.to_owned()).take(MOST).collect()
}

/// How many letters to insert, remove, change or swap, letter case aside; `None` if that is more
/// than a third of the name.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    const LONGEST: usize = 200;
    // `push` is near `queue::push`, whatever the distance.
    let tail = name.rsplit("::").next().unwrap_or(name);
    let name = if wanted.contains("::") { name } else { tail };
    let limit = (wanted.chars().count().max(3)) / 3;
    if wanted.len().abs_diff(name.len()) > limit * 4 || wanted.len().max(name.len()) > LONGEST {
        return None;
    }
    let left: Vec<char> = wanted.chars().flat_map(char::to_lowercase).collect();
    let right: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let found = edits(&left, &right);
    (found <= limit).then_some(found)
}

fn edits(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let change = last[j] + usize::from(a != b);
            let mut best = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

/// `; did you mean 'a' or 'b'?`, or nothing.
pub(crate) fn hint(near: &[String]) -> String {
    match near {
        [] => String::new(),
        [only] => format!("; did you mean '{only}'?"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("'{name}'")).collect();
            format!("; did you mean {} or '{last}'?", first.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let known = ["count", "length", "lib::queue::push", "next"];
        for (wanted, expected) in [
            ("cuont", &["count"][..]),
            ("Length", &["length"]),
            ("lenght", &["length"]),
            ("pusk", &["lib::queue::push"]),
            ("zebra", &[]),
        ] {
            assert_eq!(near(wanted, known), expected, "{wanted}");
        }
    }
}
