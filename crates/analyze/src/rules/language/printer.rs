//! Tree to text. What is printed parses to the same tree (a property test holds this).

use super::ast::{
    Define, EventPattern, Expression, ExpressionKind, File, Name, Pattern, Quantifier, Rule,
};
use spec::Printer;

/// The file as text.
#[must_use]
pub fn print(file: &File) -> String {
    let mut out = Printer::default();
    file.defines.iter().for_each(|one| out.line(define(one)));
    file.rules.iter().for_each(|one| out.line(rule(one)));
    out.finish()
}

fn define(define: &Define) -> String {
    let parameters = names(&define.parameters, ", ");
    format!("define {}({parameters}) = {}", define.name.text, expression(&define.body))
}

/// A rule on one line.
#[must_use]
pub fn rule(rule: &Rule) -> String {
    let title = rule.title.as_deref().map(|title| format!(" {}", quoted(title)));
    let mut parts: Vec<String> = rule.parts.iter().map(|part| part.text.clone()).collect();
    let mut point = vec![rule.point.word.text.clone()];
    point.extend(rule.point.names.iter().map(|name| name.text.clone()));
    parts.push(point.join(" "));
    let chains: Vec<_> = rule.locators.iter().map(|name| format!("VPC({})", name.text)).collect();
    let locators =
        if chains.is_empty() { String::new() } else { format!(" : {}", chains.join(", ")) };
    let (title, parts) = (title.unwrap_or_default(), parts.join("; "));
    let condition = expression(&rule.condition);
    format!("[{}]{title} detect <{parts}>: {condition}{locators}", rule.name.text)
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            other => out.push(other),
        }
    }
    out + "\""
}

fn names(names: &[Name], between: &str) -> String {
    names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(between)
}

/// A condition or term. Every operand that is not simple stands in parentheses.
#[must_use]
pub fn expression(this: &Expression) -> String {
    match &this.kind {
        ExpressionKind::Or(all) => joined(all, " || "),
        ExpressionKind::And(all) => joined(all, " && "),
        ExpressionKind::Not(inner) => format!("!{}", operand(inner)),
        ExpressionKind::Compare(left, relation, right) => {
            format!("{} {} {}", operand(left), relation.symbol(), operand(right))
        }
        ExpressionKind::Arithmetic(left, operator, right) => {
            format!("{} {} {}", operand(left), operator.symbol(), operand(right))
        }
        ExpressionKind::Quantified(quantifier, pattern, set, body) => {
            let word = if *quantifier == Quantifier::Exists { "exists" } else { "forall" };
            let pattern = match pattern {
                Pattern::Variable(name) => name.text.clone(),
                Pattern::Event(event) => format!("event({})", event_pattern(event)),
            };
            let body = body.as_ref().map(|body| format!(" such that ({})", expression(body)));
            format!("{word} {pattern} in {}{}", set.text, body.unwrap_or_default())
        }
        ExpressionKind::FindLast(event) => format!("FindLast({})", event_pattern(event)),
        ExpressionKind::Apply(name, arguments) => {
            let arguments: Vec<_> = arguments.iter().map(expression).collect();
            format!("{}({})", name.text, arguments.join(", "))
        }
        ExpressionKind::Variable(name) => name.clone(),
        ExpressionKind::Number(number) => number.to_string(),
        ExpressionKind::Null => "NULL".to_owned(),
    }
}

fn joined(all: &[Expression], between: &str) -> String {
    all.iter().map(operand).collect::<Vec<_>>().join(between)
}

fn operand(this: &Expression) -> String {
    let simple = matches!(
        this.kind,
        ExpressionKind::Apply(..)
            | ExpressionKind::Variable(_)
            | ExpressionKind::Number(_)
            | ExpressionKind::Null
            | ExpressionKind::FindLast(_)
    );
    if simple { expression(this) } else { format!("({})", expression(this)) }
}

fn event_pattern(event: &EventPattern) -> String {
    let mut all = vec![event.time.clone(), event.kind.clone()];
    all.extend(event.arguments.iter().cloned());
    names(&all, ", ")
}
