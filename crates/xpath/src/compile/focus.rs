//! Which parts of an expression look at the position and the size of their own context.

use crate::ast::{Expr, ExprKind, Path, PathStart, Step};
use crate::static_context::FUNCTION_NAMESPACE;

/// What an expression needs of its focus, apart from the item.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FocusUse {
    pub(super) position: bool,
    pub(super) size: bool,
}

/// Looks at an expression but not into predicates and steps, which have a focus of their own.
pub(super) fn focus_use(expr: &Expr) -> FocusUse {
    let mut found = FocusUse::default();
    collect(expr, &mut found);
    found
}

fn collect(expr: &Expr, found: &mut FocusUse) {
    match &expr.kind {
        ExprKind::Call(name, arguments)
            if arguments.is_empty() && name.namespace.as_deref() == Some(FUNCTION_NAMESPACE) =>
        {
            found.position |= &*name.local == "position";
            found.size |= &*name.local == "last";
        }
        ExprKind::Path(path) => {
            if let PathStart::Expr(start) = &path.start {
                collect(start, found);
            }
        }
        ExprKind::Filter(base, _) | ExprKind::Map(base, _) => collect(base, found),
        _ => expr.for_each_child(&mut |child| collect(child, found)),
    }
}

/// The expressions inside a path that have a focus of their own.
pub(super) fn inner_expressions(path: &Path) -> impl Iterator<Item = &Expr> {
    path.steps.iter().flat_map(|step| match step {
        Step::Axis(axis) => axis.predicates.iter(),
        Step::Expr(expr) => std::slice::from_ref(expr).iter(),
    })
}
