//! Shows a rule at its sites: who obeys it and who does not, with the lines of both accesses.

use crate::Analysis;
use crate::graph::{FunctionId, Variable};
use crate::judge::together;
use crate::rules::{Rule, Way};
use std::fmt;

/// What one function with the left side of a rule does about the right side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The function.
    pub function: FunctionId,
    /// Line of the left access.
    pub left_line: u32,
    /// Line of the right access; none if there is none nearby.
    pub right_line: Option<u32>,
    /// Whether both accesses are the function's own.
    pub is_direct: bool,
}

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

/// Every function with the left side of a rule, in file order.
pub fn sites(analysis: &Analysis, rule: &Rule) -> Vec<Site> {
    let graph = &analysis.graph;
    let of = |function, (way, variable): (Way, Variable)| {
        let entries = graph.entries(function, variable).iter().copied();
        entries.filter(|it| it.kind.meets(way.mask())).collect::<Vec<_>>()
    };
    let mut sites = Vec::new();
    for function in analysis.occurrences.functions(rule.left[0].1) {
        let left: Vec<_> = rule.left.iter().map(|side| of(function, *side)).collect();
        if left.iter().any(Vec::is_empty) {
            continue;
        }
        let right = of(function, rule.right);
        let sides: Vec<_> = left.iter().map(Vec::as_slice).collect();
        let distance = analysis.options.max_distance;
        let outcome = together(&sides, &right, distance);
        let (i, j) = (rule.left[0].0 as usize, rule.right.0 as usize);
        let near = right
            .iter()
            .flat_map(|b| left[0].iter().map(move |a| (a, b)))
            .filter(|(a, b)| a.via == 0 || a.via != b.via)
            .min_by_key(|(a, b)| a.statement.abs_diff(b.statement))
            .filter(|(a, b)| a.statement.abs_diff(b.statement) <= distance);
        if near.is_none() && outcome.is_copied {
            continue;
        }
        sites.push(Site {
            function,
            left_line: near.map_or(left[0][0].line, |(a, _)| a.line),
            right_line: near.map(|(_, b)| b.line),
            is_direct: outcome.direct[i][j],
        });
    }
    sites
}

/// Reads a rule in the notation of reports and counts it, whether or not it meets the thresholds.
pub fn read_rule(analysis: &Analysis, text: &str) -> Result<Rule, BadRule> {
    let syntax = || BadRule::Syntax(text.to_string());
    let (left, right) = text.split_once("=>").ok_or_else(syntax)?;
    let side = |text: &str| {
        let (way, name) = text.trim().split_once('(').ok_or_else(syntax)?;
        let name = name.trim().strip_suffix(')').ok_or_else(syntax)?;
        let way = Way::ALL.into_iter().find(|it| it.to_string() == way.trim());
        Ok((way.ok_or_else(syntax)?, find_variable(analysis, name.trim())?))
    };
    let left = left.split('&').map(side).collect::<Result<Vec<_>, _>>()?;
    let right = side(right)?;
    let known = analysis.rules.iter().find(|rule| rule.left == left && rule.right == right);
    if let Some(rule) = known {
        return Ok(rule.clone());
    }
    let mut rule = Rule { left, right, support: 0, direct: 0, left_support: 0, same_object: 0 };
    let sites = sites(analysis, &rule);
    rule.left_support = sites.len() as u32;
    rule.support = sites.iter().filter(|site| site.right_line.is_some()).count() as u32;
    rule.direct = sites.iter().filter(|site| site.is_direct).count() as u32;
    Ok(rule)
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
