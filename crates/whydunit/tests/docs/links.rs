//! Links between pages lead somewhere: to a file that is there, and to a heading in it.

use super::support::root;
use std::path::Path;

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for path in super::pages().into_iter().chain([root().join("ARCHITECTURE.md")]) {
        let text = std::fs::read_to_string(&path).expect("a page");
        for target in targets(&text) {
            if !leads_somewhere(&path, &text, target) {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What is linked to, without what lies elsewhere.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|link| !link.contains("://") && !link.contains(' ') && !link.contains('`'))
}

fn leads_somewhere(page: &Path, text: &str, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let there = page.parent().expect("a folder").join(file);
    if !file.is_empty() && !there.exists() {
        return false;
    }
    if heading.is_empty() {
        return true;
    }
    let other = (!file.is_empty()).then(|| std::fs::read_to_string(there).unwrap_or_default());
    let text = other.as_deref().unwrap_or(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).any(|name| name == heading)
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[test]
fn anchors_are_those_of_headings() {
    assert_eq!(anchor("Fingerprints and SARIF"), "fingerprints-and-sarif");
    assert_eq!(anchor("The C library's `malloc`"), "the-c-librarys-malloc");
    let text = "# One\n[a](#one) [b](#two) [c](https://x.y/z)\n";
    let found: Vec<&str> = targets(text).collect();
    assert_eq!(found, ["#one", "#two"]);
    assert!(leads_somewhere(Path::new("/x/y.md"), text, "#one"));
    assert!(!leads_somewhere(Path::new("/x/y.md"), text, "#two"));
    assert!(!leads_somewhere(Path::new("/x/y.md"), text, "no.md"));
}
