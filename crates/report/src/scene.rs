//! A moment of a recording as text: where it is, and who called.

use base::When;
use investigate::scene::Seen;

/// The scene on a few lines.
pub fn text(seen: &Seen) -> String {
    let When { thread, position, .. } = seen.when;
    let mut text = format!("{position} in thread {thread}: {}\n", seen.place);
    if let Some(end) = &seen.end {
        text += &format!("  {end}\n");
    }
    for (number, frame) in seen.stack.iter().enumerate() {
        text += &format!("  #{number} {frame}\n");
    }
    text
}
