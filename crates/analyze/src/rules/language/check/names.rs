//! Messages about names: what is unknown, what was probably meant, which definitions clash.

use crate::rules::language::ast::{Define, Expression, ExpressionKind, Name};
use crate::rules::model::Function;
use spec::{Diagnostic, Diagnostics};
use symbols::suggest;

/// An error for a name that is not among `known`, with the nearest one suggested.
pub fn unknown<'a>(
    what: &str,
    name: &Name,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let message = format!("unknown {what} `{}`", name.text);
    let words: Vec<_> = known.clone().map(|word| format!("`{word}`")).collect();
    let label = match words.len() {
        1..=12 => format!("expected one of {}", words.join(", ")),
        _ => format!("expected a known {what}"),
    };
    let diagnostic = Diagnostic::new(name.span, message, label);
    match closest(&name.text, known) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

/// The name that was probably meant.
pub fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    suggest::near(name, known).into_iter().next()
}

/// Checks what can be said of a definition by itself: its name is new, its parameters differ, and
/// it uses only definitions before it, so that putting definitions in comes to an end.
pub fn check_define(all: &[Define], index: usize, errors: &mut Diagnostics) {
    let (before, define) = (&all[..index], &all[index]);
    let name = &define.name;
    let built_in = Function::ALL.iter().any(|(_, word, ..)| *word == name.text);
    if built_in || before.iter().any(|known| known.name.text == name.text) {
        let message = format!("`{}` is already defined", name.text);
        errors.push(Diagnostic::new(name.span, message, "expected another name"));
    }
    for (index, parameter) in define.parameters.iter().enumerate() {
        if define.parameters[..index].iter().any(|known| known.text == parameter.text) {
            let message = format!("`{}` is a parameter twice", parameter.text);
            errors.push(Diagnostic::new(parameter.span, message, "expected another name"));
        }
    }
    uses_earlier(&all[index..], &define.body, errors);
}

fn uses_earlier(later: &[Define], this: &Expression, errors: &mut Diagnostics) {
    let mut each = |inner: &Expression| uses_earlier(later, inner, errors);
    match &this.kind {
        ExpressionKind::Or(all) | ExpressionKind::And(all) => all.iter().for_each(each),
        ExpressionKind::Not(inner) => each(inner),
        ExpressionKind::Compare(left, _, right) | ExpressionKind::Arithmetic(left, _, right) => {
            each(left);
            each(right);
        }
        ExpressionKind::Quantified(_, _, _, Some(body)) => each(body),
        ExpressionKind::Apply(name, arguments) => {
            arguments.iter().for_each(each);
            if later.iter().any(|known| known.name.text == name.text) {
                let message = format!("`{}` is used before it is defined", name.text);
                let label = "expected a definition that stands before this one";
                errors.push(Diagnostic::new(name.span, message, label));
            }
        }
        _ => {}
    }
}
