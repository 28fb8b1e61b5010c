//! Values in the form of `oracle.py`, for comparison with gdb.

use symbols::members::Scalar;
use symbols::types::{Count, Shape};
use symbols::{Scene, Value};

pub fn canonical(scene: &Scene<'_>, value: &Value) -> String {
    // gdb takes a value for lost as a whole if any of it is.
    if value.held.why_lost() == Some(&symbols::Lost::OptimisedOut) {
        return "<optimised out>".into();
    }
    text(scene, value).unwrap_or_else(|lost| format!("<{lost}>"))
}

fn text(scene: &Scene<'_>, value: &Value) -> Result<String, symbols::Lost> {
    let (module, ty, found) = scene.stripped(value.module, &value.ty);
    let value = &Value { module, ty, held: value.held.clone() };
    Ok(match &found.shape {
        Shape::Reference { .. } => {
            let to = scene.dereference(value)?.expect("a reference leads somewhere");
            canonical(scene, &to)
        }
        Shape::Array { counts, .. } => {
            let Some(Count::Fixed(count)) = counts.first() else { return Ok("[?]".into()) };
            let element = |index| {
                let element = scene.element(value, index).expect("an element");
                canonical(scene, &element.expect("an element"))
            };
            let elements: Vec<String> = (0..i128::from(*count)).map(element).collect();
            format!("[{}]", elements.join(", "))
        }
        Shape::Record(record) => {
            let visible = |name: &Option<String>| {
                !name.as_deref().is_some_and(|name| name.starts_with("_vptr"))
            };
            let members = record.members.iter().filter(|member| visible(&member.name));
            let members: Vec<String> = members
                .map(|member| {
                    let name = match &member.name {
                        _ if member.base => "<base>",
                        Some(name) => name,
                        None => "<anonymous>",
                    };
                    let inner = scene.member_value(value, member).expect("a member");
                    format!("{name}={}", canonical(scene, &inner))
                })
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        shape => match (shape, scene.scalar(value)?) {
            (Shape::Pointer { .. }, Some(Scalar::Integer(number))) => format!("{number:#x}"),
            (_, Some(Scalar::Integer(number))) => number.to_string(),
            (_, Some(Scalar::Float(number))) => format!("{number:?}"),
            (_, None) => "<no number>".into(),
        },
    })
}
