//! Figures about all rules of a tree, compared with what the rules themselves say.

use correlate::library::Library;
use correlate::rules::{Options, Way};
use correlate::statistics::{distribution, sensitivity};
use correlate::tree::Silent;
use correlate::{Analysis, Request, analyse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn analysed() -> Analysis {
    let request = Request {
        roots: vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")],
        library: Library::builtin(),
        options: Options { min_support: 5, min_confidence: 0.6, ..Options::default() },
        max_file_size: 1 << 20,
        ..Request::default()
    };
    analyse(&request, &Silent).expect("C files")
}

/// The same figures from the text of the rules.
#[test]
fn the_distribution_is_that_of_the_rules() {
    let analysis = analysed();
    let found = distribution(&analysis);
    let text: Vec<_> = analysis.rules.iter().map(|rule| analysis.shown(rule)).collect();
    let sides = text.iter().filter_map(|rule| {
        let rule = rule.strip_prefix("any(")?.strip_suffix(')')?;
        let (left, right) = rule.split_once(") => any(")?;
        (!left.contains('&')).then_some((left, right))
    });
    let directed: BTreeSet<_> = sides.collect();
    let pairs: BTreeSet<_> =
        directed.iter().map(|(left, right)| (left.min(right), left.max(right))).collect();
    let both =
        pairs.iter().filter(|(x, y)| directed.contains(&(x, y)) && directed.contains(&(y, x)));
    assert_eq!((found.pairs, found.symmetric), (pairs.len(), both.count()));
    assert!(found.symmetric > 0 && found.symmetric < found.pairs, "{found:?}");
    let mut peers: BTreeMap<&str, usize> = BTreeMap::new();
    for (x, y) in &pairs {
        *peers.entry(x).or_default() += 1;
        *peers.entry(y).or_default() += 1;
    }
    assert_eq!(found.variables, peers.len());
    for (count, variables) in &found.peers {
        assert_eq!(*variables, peers.values().filter(|it| *it == count).count(), "{count} peers");
    }
    let updates = text
        .iter()
        .filter(|it| it.starts_with("write(") && it.contains(" => write(") && !it.contains('&'));
    assert_eq!(found.forms["write => write"], updates.count());
    assert_eq!(found.left.values().sum::<usize>(), analysis.rules.len());
}

#[test]
fn thresholds_change_what_is_found_as_they_should() {
    let analysis = analysed();
    let given = analysis.options;
    let rules = analysis.rules.clone();
    let (analysis, settings) = sensitivity(analysis, &Silent);
    assert_eq!((analysis.rules, analysis.options), (rules.clone(), given));
    for part in settings.chunk_by(|left, right| left.option == right.option) {
        let counts: Vec<_> = part.iter().map(|it| it.rules).collect();
        assert!(counts.is_sorted_by(|left, right| left >= right), "{part:?}");
        assert!(part.iter().all(|it| it.kept <= it.findings), "{part:?}");
    }
    let same = settings.iter().find(|it| it.option == "--min-support" && it.value == 5.0);
    let same = same.expect("the value that is given");
    let given = rules.iter().filter(|rule| rule.is_simple(Way::Any, Way::Any)).count();
    assert_eq!((same.rules, same.findings), (given, same.kept));
    assert!(same.findings > 0);
}
