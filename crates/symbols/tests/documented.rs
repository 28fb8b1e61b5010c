//! The page of the notations: every place and value on it is accepted.

use std::path::Path;
use symbols::PlaceName;
use symbols::expression::parser::parse;

/// The code in the first column of the table under a heading.
fn examples(page: &str, heading: &str) -> Vec<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section '{heading}'"));
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

#[test]
fn every_example_is_accepted() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/places-and-values.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let places = examples(&page, "Places");
    let values = examples(&page, "Values");
    assert!(places.len() >= 5 && values.len() >= 14, "{places:?} {values:?}");
    for place in places {
        let parsed: PlaceName = place.parse().unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(parsed.to_string(), place);
    }
    for value in values {
        parse(&value).unwrap_or_else(|error| panic!("{value}: {error}"));
    }
}
