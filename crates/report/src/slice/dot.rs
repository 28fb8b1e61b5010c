//! A slice as a graph for Graphviz.

use super::text;
use analyze::slice::view::View;
use std::fmt::Write;

/// The view in the DOT language. Edges go from who depends to what it depends on; their ends carry
/// which executions are meant.
pub fn render(question: &str, view: &View) -> String {
    let mut out = String::from("digraph slice {\n  rankdir=BT;\n  node [shape=box];\n");
    let _ = writeln!(out, "  question [shape=ellipse, label={}];", quoted(question));
    for (number, statement) in view.statements.iter().enumerate() {
        let function = statement.place.function.as_deref().unwrap_or_default();
        let mut label = format!("{} {function}\n{}", text::place(statement), text::line(statement));
        for note in text::notes(statement) {
            let _ = write!(label, "\n{note}");
        }
        let _ = writeln!(out, "  s{number} [label={}];", quoted(&label));
    }
    for link in &view.links {
        let user = link.user.map_or("question".to_owned(), |user| format!("s{user}"));
        let style = match link.kind {
            "value" => "solid",
            "address" => "dashed",
            _ => "dotted",
        };
        let tail = link.user.map_or_else(String::new, |_| format!("#{}", link.user_instance));
        let _ = writeln!(
            out,
            "  {user} -> s{} [label={}, taillabel={}, headlabel={}, style={style}, class={}];",
            link.on,
            quoted(&link.because),
            quoted(&tail),
            quoted(&format!("#{}", link.on_instance)),
            quoted(link.kind),
        );
    }
    out + "}\n"
}

/// A string of the DOT language. Line ends are escapes, and what a terminal would obey is left out.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn strings_cannot_end_early() {
        assert_eq!(quoted("a\"b\\"), r#""a\"b\\""#);
        assert_eq!(quoted("x\ny\u{1b}"), r#""x\ny""#);
    }
}
