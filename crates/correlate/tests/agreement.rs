//! The report agrees with itself: counts, findings and explanations say the same of every function, on
//! the programs of `tests/programs` and on random ones.

use correlate::explain::{Conformance, read_rule, sites};
use correlate::library::Library;
use correlate::rules::{Options, Way};
use correlate::tree::Silent;
use correlate::{Analysis, Request, analyse};
use proptest::prelude::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn analysed(path: PathBuf) -> Analysis {
    let options = Options {
        min_support: 4,
        min_direct_support: 3,
        min_confidence: 0.6,
        max_left: 3,
        ..Options::default()
    };
    let request = Request {
        roots: vec![path],
        library: Library::builtin(),
        options,
        max_file_size: 1 << 20,
        ..Request::default()
    };
    analyse(&request, &Silent).expect("a C file")
}

/// Compares all that is said of each rule; returns how many findings were compared.
fn check(analysis: &Analysis) -> usize {
    for rule in &analysis.rules {
        let sites = sites(analysis, rule);
        let count = |wanted: &dyn Fn(&Conformance) -> bool| {
            sites.iter().filter(|site| wanted(&site.conformance)).count() as u32
        };
        let shown = analysis.shown(rule);
        let obey = count(&|it| matches!(it, Conformance::Obeys { .. }));
        let direct = count(&|it| *it == Conformance::Obeys { direct: true });
        let counted = sites.iter().filter(|site| site.is_counted()).count() as u32;
        assert_eq!(
            (rule.support, rule.direct, rule.left_support),
            (obey, direct, counted),
            "{shown}"
        );
        assert_eq!(read_rule(analysis, &shown).as_ref(), Ok(rule));
    }
    for violation in &analysis.violations {
        for (rule, line) in &violation.broken {
            let rule = &analysis.rules[*rule];
            let mut cited = vec![rule];
            cited.extend(analysis.rules.iter().filter(|it| {
                it.is_simple(Way::Write, Way::Write)
                    && (it.left[0].1, it.right.1) == (rule.left[0].1, rule.right.1)
            }));
            for rule in cited {
                let sites = sites(analysis, rule);
                let site = sites
                    .iter()
                    .find(|it| it.function == violation.function)
                    .expect("the left side");
                let function = analysis.function_name(violation.function);
                let shown = analysis.shown(rule);
                match site.alone {
                    Some(alone) => {
                        assert_eq!(alone, *line, "{function}: {shown}");
                        let direct = Conformance::Obeys { direct: true };
                        assert_eq!(site.conformance, direct, "{function}: {shown}");
                    }
                    None => {
                        assert_eq!(site.conformance, Conformance::Breaks, "{function}: {shown}");
                        assert_eq!(site.left_line, *line, "{function}");
                    }
                }
            }
        }
    }
    analysis.violations.len()
}

#[test]
fn counts_findings_and_explanations_agree_on_the_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut findings = 0;
    for entry in std::fs::read_dir(folder).expect("the programs") {
        findings += check(&analysed(entry.expect("a file").path()));
    }
    assert!(findings > 10, "only {findings} findings were compared");
}

/// What a random function does, one statement each.
#[derive(Clone, Debug)]
enum Deed {
    Write(u8),
    Read(u8),
    Step(u8),
    Zero,
    Help(u8),
    Pass(u8),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        8 => (0u8..5).prop_map(Deed::Write),
        2 => (0u8..5).prop_map(Deed::Read),
        2 => (0u8..5).prop_map(Deed::Step),
        1 => Just(Deed::Zero),
        2 => (0u8..3).prop_map(Deed::Help),
        1 => (0u8..24).prop_map(Deed::Pass),
    ]
}

fn program(functions: &[Vec<Deed>]) -> String {
    let mut text = "struct s { int f0, f1, f2, f3, f4; };\n".to_string();
    for helper in 0..3 {
        let _ = writeln!(text, "static void help{helper}(struct s *p) {{ p->f{helper} = p->f4; }}");
    }
    for (index, deeds) in functions.iter().enumerate() {
        let _ = writeln!(text, "void g{index}(struct s *p, int n) {{");
        for (line, deed) in deeds.iter().enumerate() {
            let _ = match deed {
                Deed::Write(field) => writeln!(text, "p->f{field} = n + {line};"),
                Deed::Read(field) => writeln!(text, "n += p->f{field};"),
                Deed::Step(field) => writeln!(text, "p->f{field}++;"),
                Deed::Zero => writeln!(text, "memset(p, 0, sizeof(*p));"),
                Deed::Help(helper) => writeln!(text, "help{helper}(p);"),
                Deed::Pass(function) => writeln!(text, "g{function}(p, n);"),
            };
        }
        text.push_str("}\n");
    }
    text
}

#[test]
fn counts_findings_and_explanations_agree_on_random_programs() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let functions = proptest::collection::vec(proptest::collection::vec(deed(), 1..9), 8..24);
    let findings = std::cell::Cell::new(0);
    let outcome = runner.run(&functions, |functions| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("random.c");
        std::fs::write(&path, program(&functions)).expect("a file");
        findings.set(findings.get() + check(&analysed(path)));
        Ok(())
    });
    outcome.expect("they agree");
    assert!(findings.get() > 100, "only {} findings were compared", findings.get());
}
