//! Where the objects come from whose variables a function writes: from itself, or from elsewhere.
//!
//! Functions are compared by it. Those that make an object fill in all of it; that says little about one
//! that changes a single variable of an object that has long been complete. But a variable that is left
//! out of a *new* object keeps what was in its memory before.

use crate::access::{Access, Call, Origin, Owner};
use crate::conformance::{Context, writes};
use crate::graph::{FunctionId, Variable};

/// A set of origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origins(u8);

impl Origins {
    const NEW: u8 = 1;
    const EXISTED: u8 = 2;

    /// Those of the objects of some writes.
    pub fn of<'a>(writes: impl Iterator<Item = &'a Access>) -> Self {
        let origin = |write: &Access| match write.origin {
            Origin::New(_) => Self::NEW,
            Origin::Existing | Origin::Global => Self::EXISTED,
            Origin::Unknown => 0,
        };
        Self(writes.fold(0, |set, write| set | origin(write)))
    }

    /// Whether any is known.
    pub fn is_known(self) -> bool {
        self.0 != 0
    }

    /// Whether the function makes one of the objects.
    pub fn is_new(self) -> bool {
        self.0 & Self::NEW != 0
    }

    /// Whether one of the objects was there before.
    pub fn existed(self) -> bool {
        self.0 & Self::EXISTED != 0
    }

    /// How alike an update of these objects is to those of others, from a tenth to 1: the share of them
    /// with an origin in common.
    pub fn likeness(self, others: &[Self]) -> f64 {
        const REST: f64 = 0.1;
        let known = others.iter().filter(|it| it.is_known());
        let common = known.clone().filter(|it| self.0 & it.0 != 0).count() as f64;
        let all = known.count();
        if !self.is_known() || all == 0 {
            return 1.0;
        }
        (common / all as f64 + REST) / (1.0 + REST)
    }
}

/// Whether a function that fills in `x` of a new object leaves its `y` as it came: the memory is neither
/// zeroed nor assigned as a whole, and nobody was handed the object before, who could have set `y`.
pub(crate) fn is_unset(context: Context, function: FunctionId, x: Variable, y: Variable) -> bool {
    let Context { tree, graph, .. } = context;
    let facts = &tree.functions[function as usize];
    // In C++ a constructor may have run.
    if !tree.paths[facts.file as usize].ends_with(".c")
        || graph.touches_whole(tree, function, y).is_some()
    {
        return false;
    }
    let same_struct =
        graph.struct_number(x) != 0 && graph.struct_number(x) == graph.struct_number(y);
    // Nobody sets an array as such.
    let is_array = match graph.variables[y.0 as usize] {
        (Owner::Struct(id), field) => tree.types.is_array(id, field),
        _ => false,
    };
    let links = &graph.links[function as usize];
    let mut own = writes(context, function, x).peekable();
    let is_unset = |write: &Access| {
        let Origin::New(object) = write.origin else { return false };
        let names = [object, write.base];
        let whole = graph.objects.wholes(function).iter().any(|it| names.contains(&it.base));
        let handed = |(call, callee): (&Call, &Option<FunctionId>)| {
            let is_argument = call.arguments.iter().any(|it| names.contains(&it.base));
            let is_made = names.contains(&call.result.base)
                && callee.is_some_and(|it| graph.objects.makes(it));
            is_made || is_argument && call.statement <= write.statement
        };
        object != 0 && !whole && !facts.calls.iter().zip(links).any(handed)
    };
    same_struct && !is_array && own.peek().is_some() && own.all(is_unset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_the_share_with_an_origin_in_common() {
        let (new, old) = (Origins(Origins::NEW), Origins(Origins::EXISTED));
        assert_eq!(new.likeness(&[new, new]), 1.0);
        assert_eq!(Origins::default().likeness(&[new]), 1.0);
        assert_eq!(old.likeness(&[Origins::default()]), 1.0);
        assert!(old.likeness(&[new, new]) < 0.1);
        let half = old.likeness(&[new, old]);
        assert!((0.5..0.6).contains(&half), "{half}");
    }
}
