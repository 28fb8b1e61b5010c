//! Follows `if` and `switch`, and numbers the branches that they choose between: of two accesses in
//! alternative branches only one is made.

use crate::access::{Branch, Landing};
use crate::collect::{MOST_NESTING, Walker};
use crate::names::Name;
use crate::parse::text;
use tree_sitter::Node;

/// A label among the statements of a function's body.
pub(crate) struct Label {
    name: Name,
    /// The first statement behind it.
    at: u32,
    /// Whether the statement before it leads elsewhere.
    is_closed: bool,
}

impl Walker<'_> {
    /// Notes a `goto`.
    pub(crate) fn jump(&mut self, node: Node) {
        self.statement += 1;
        if let Some(label) = node.child_by_field_name("label") {
            let name = self.names.intern(text(label, self.source));
            self.jumps.push((name, self.statement));
        }
    }

    /// Follows a statement with a label.
    pub(crate) fn label(&mut self, node: Node) {
        let body = node.parent().and_then(|it| it.parent());
        let is_outermost = body.is_some_and(|it| it.kind() == "function_definition");
        if let Some(label) = node.child_by_field_name("label").filter(|_| is_outermost) {
            let name = self.names.intern(text(label, self.source));
            let before = std::iter::successors(node.prev_named_sibling(), |it| {
                it.prev_named_sibling().filter(|_| it.kind() == "comment")
            });
            let before = before.last().and_then(last_statement);
            let is_closed = before.is_some_and(|it| returns(it) || it.kind() == "goto_statement");
            self.labels.push(Label { name, at: self.statement + 1, is_closed });
        }
        self.visit_children(node);
    }

    /// The labels of a function that only jumps lead to.
    pub(crate) fn landings(&mut self) -> Box<[Landing]> {
        let jumps = std::mem::take(&mut self.jumps);
        let mut landings: Vec<Landing> = Vec::new();
        // Whether what stands before a label is behind one that only jumps lead to.
        let mut is_behind = false;
        for label in std::mem::take(&mut self.labels) {
            is_behind |= label.is_closed;
            if !is_behind {
                continue;
            }
            let own = jumps.iter().filter(|(name, _)| *name == label.name);
            let fallen = landings.last().filter(|_| !label.is_closed).map(|it| it.from);
            let from = own.map(|(_, from)| *from).chain(fallen).max().unwrap_or(u32::MAX);
            landings.push(Landing { at: label.at, from });
        }
        landings.into()
    }

    /// Follows an `if` with what it chooses between.
    pub(crate) fn condition(&mut self, node: Node) {
        let choice = self.new_choice();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let of_branch = |field| node.child_by_field_name(field) == Some(child);
            if of_branch("consequence") || of_branch("alternative") {
                let branch = self.new_branch(choice);
                self.in_branch(branch, child, |walker| walker.visit(child));
            } else {
                self.visit(child);
            }
        }
    }

    /// Follows a `switch`: its cases are alternatives. Those that fall through to the next are one branch
    /// with it.
    pub(crate) fn switch(&mut self, node: Node) {
        if let Some(condition) = node.child_by_field_name("condition") {
            self.visit(condition);
        }
        let Some(body) = node.child_by_field_name("body") else { return };
        let choice = self.new_choice();
        let mark = self.shadowed.len();
        let mut open = None;
        let mut cursor = body.walk();
        for child in body.named_children(&mut cursor) {
            if child.kind() != "case_statement" {
                self.visit(child);
                continue;
            }
            let branch = open.unwrap_or_else(|| self.new_branch(choice));
            self.in_branch(branch, child, |walker| walker.visit(child));
            open = (!leaves(last_statement(child))).then_some(branch);
        }
        self.leave_block(mark);
    }

    fn new_choice(&mut self) -> u32 {
        self.choices += 1;
        self.choices
    }

    fn new_branch(&mut self, choice: u32) -> u32 {
        self.branches.push(Branch { parent: self.branch, choice, last: 0, returns: false });
        self.branches.len() as u32
    }

    /// Follows something as part of a branch.
    fn in_branch(&mut self, branch: u32, node: Node, follow: impl FnOnce(&mut Self)) {
        let parent = std::mem::replace(&mut self.branch, branch);
        follow(self);
        self.branch = parent;
        let last = self.statement;
        let returns = last_statement(node).is_some_and(returns);
        let it = &mut self.branches[branch as usize - 1];
        (it.last, it.returns) = (last, returns);
    }
}

/// The statement that a branch ends with.
fn last_statement(node: Node) -> Option<Node> {
    let mut at = node;
    for _ in 0..MOST_NESTING {
        if !matches!(at.kind(), "compound_statement" | "case_statement" | "else_clause") {
            return Some(at);
        }
        let mut cursor = at.walk();
        let children = at.named_children(&mut cursor).filter(|it| it.kind() != "comment");
        at = children.last()?;
    }
    None
}

fn returns(last: Node) -> bool {
    matches!(last.kind(), "return_statement" | "throw_statement")
}

/// Whether a case with this statement at its end does not fall through to the next one.
fn leaves(last: Option<Node>) -> bool {
    last.is_some_and(|it| {
        let kind = it.kind();
        returns(it) || matches!(kind, "break_statement" | "goto_statement" | "continue_statement")
    })
}
