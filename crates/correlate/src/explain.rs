//! Shows a rule at its sites: who obeys it and who does not, with the lines of both accesses.

use crate::Analysis;
use crate::conformance::Census;
pub use crate::conformance::{Conformance, Reason, Site};
use crate::graph::Variable;
use crate::rules::{MOST_LEFT, Rule, Way};
use std::fmt;

/// A rule text that names nothing in the tree.
#[derive(Debug, PartialEq, Eq)]
pub enum BadRule {
    /// It does not read like `write(a) => any(b)`.
    Syntax(String),
    /// No variable has this name; these are like it.
    Unknown(String, Vec<String>),
}

impl fmt::Display for BadRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(text) => write!(
                out,
                "`{text}` is no rule; write it as reports do: `write(S::a) => any(S::b)`"
            ),
            Self::Unknown(name, like) if like.is_empty() => {
                write!(out, "no function accesses a variable `{name}`")
            }
            Self::Unknown(name, like) => write!(
                out,
                "no function accesses a variable `{name}`; did you mean {}?",
                like.join(", ")
            ),
        }
    }
}

impl std::error::Error for BadRule {}

/// Every function with the left side of a rule, in file order, and where it stands.
pub fn sites(analysis: &Analysis, rule: &Rule) -> Vec<Site> {
    Census::new(analysis.context(), rule).sites()
}

/// Reads a rule in the notation of reports and counts it, whether or not it meets the thresholds.
pub fn read_rule(analysis: &Analysis, text: &str) -> Result<Rule, BadRule> {
    let syntax = || BadRule::Syntax(text.to_string());
    let (left, right) = parse_rule(text, syntax, |name| find_variable(analysis, name))?;
    let known = analysis.rules.iter().find(|rule| rule.left == left && rule.right == right);
    if let Some(rule) = known {
        return Ok(rule.clone());
    }
    let mut rule = Rule::uncounted(left, right);
    analysis.context().recount(&mut rule);
    Ok(rule)
}

/// Both sides of a rule.
type Sides = (Vec<(Way, Variable)>, (Way, Variable));

/// Takes a rule in the notation of reports apart; `syntax` makes the error for what is none, `find`
/// knows the variables.
pub(crate) fn parse_rule<E>(
    text: &str,
    syntax: impl Fn() -> E,
    find: impl Fn(&str) -> Result<Variable, E>,
) -> Result<Sides, E> {
    let (left, right) = text.split_once("=>").ok_or_else(&syntax)?;
    let side = |text: &str| {
        let (way, name) = text.trim().split_once('(').ok_or_else(&syntax)?;
        let name = name.trim().strip_suffix(')').ok_or_else(&syntax)?;
        let way = Way::ALL.into_iter().find(|it| it.to_string() == way.trim());
        Ok((way.ok_or_else(&syntax)?, find(name.trim())?))
    };
    let left = left.split('&').map(side).collect::<Result<Vec<_>, _>>()?;
    let right = side(right)?;
    if left.len() > MOST_LEFT || left.iter().any(|(way, _)| *way != left[0].0) {
        return Err(syntax());
    }
    Ok((left, right))
}

fn find_variable(analysis: &Analysis, name: &str) -> Result<Variable, BadRule> {
    let all = (0..analysis.graph.variables.len() as u32).map(Variable);
    let shown = |variable: &Variable| analysis.graph.shown(&analysis.tree, *variable);
    if let Some(found) = all.clone().find(|variable| shown(variable) == name) {
        return Ok(found);
    }
    let field = name.rsplit("::").next().unwrap_or(name);
    let mut like: Vec<_> = all
        .filter(|variable| analysis.graph.is_named(*variable, &analysis.tree, field))
        .map(|variable| shown(&variable))
        .collect();
    like.sort();
    like.truncate(5);
    Err(BadRule::Unknown(name.to_string(), like))
}
