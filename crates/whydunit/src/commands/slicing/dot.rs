//! A slice as a graph for Graphviz.

use super::text;
use analyze::slice::view::View;
use std::fmt::Write;

/// The view in the DOT language.
pub fn render(view: &View) -> String {
    let mut out = String::from("digraph slice {\n  rankdir=BT;\n  node [shape=box];\n");
    let _ = writeln!(out, "  question [shape=ellipse, label=\"question\"];");
    for (number, statement) in view.statements.iter().enumerate() {
        let label = format!("{}\\n{}", text::place(statement), escaped(&text::line(statement)));
        let _ = writeln!(out, "  s{number} [label=\"{label}\"];");
    }
    for link in &view.links {
        let user = link.user.map_or("question".to_owned(), |user| format!("s{user}"));
        let style = match link.kind {
            "value" => "solid",
            "address" => "dashed",
            _ => "dotted",
        };
        let because = escaped(&link.because);
        let _ = writeln!(out, "  {user} -> s{} [label=\"{because}\", style={style}];", link.on);
    }
    out + "}\n"
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
