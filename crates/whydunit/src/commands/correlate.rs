//! `whydunit correlate`: which variables of a source tree belong together, and who forgot one.

use crate::exit::Exit;
use crate::render::Output as Destination;
use ::report::correlate::{explanation, tables, text};
use ::report::style::Style;
use ::report::{json, sarif};
use anyhow::Context;
use base::Finding;
use correlate::baseline::Baseline;
use correlate::database::Database;
use correlate::library::Library;
use correlate::rules::{BySize, MOST_LEFT, Options};
use correlate::sources::Exclusions;
use correlate::tree::{Progress, Silent, Stage};
use correlate::{Analysis, Request, explain, report, statistics, suppress};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Arguments of `whydunit correlate`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  whydunit correlate src           which variables belong together, and who forgot one
  whydunit correlate --json src    the same for a script

Exit codes: 0 nothing found, 1 findings, 2 wrong arguments or bad input. How to read the report:
docs/correlate.md.")]
pub struct Correlate {
    /// Files and folders of C or C++ source; they need not build
    #[arg(required = true)]
    source: Vec<PathBuf>,
    /// Files and folders that only lend their declarations, such as system headers
    #[arg(long, value_name = "PATH")]
    headers: Vec<PathBuf>,
    /// Leave out files and folders of this name or path below a SOURCE; `*` is any part of a name
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Analyse hidden folders and copies of other projects (`deps`, `vendor`, `third_party`, …), too
    #[arg(long)]
    all_folders: bool,
    /// What functions outside the tree do to their arguments (docs/correlate.md)
    #[arg(long, value_name = "FILE")]
    summaries: Vec<PathBuf>,
    #[command(flatten)]
    thresholds: Thresholds,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    accepted: Accepted,
    /// Pass over files larger than this many MiB
    #[arg(long, value_name = "MIB", default_value_t = 32)]
    max_file_size: u64,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Thresholds")]
struct Thresholds {
    /// Functions that must obey a rule [default: 10; 5 if the tree has fewer than 10,000 functions]
    #[arg(long, value_name = "N")]
    min_support: Option<u32>,
    /// Functions that must obey it by their own accesses [default: 5; 3 in such a tree]
    #[arg(long, value_name = "N")]
    min_direct_support: Option<u32>,
    /// Share of the functions with the left side that must obey, from 0 to 1 [default: 0.8; 0.7 in such
    /// a tree]
    #[arg(long, value_name = "SHARE")]
    min_confidence: Option<f64>,
    /// Statements that may lie between two accesses that are together
    #[arg(long, value_name = "N", default_value_t = Options::default().max_distance)]
    max_distance: u32,
    /// Functions that may access a variable before it is left out as popular
    #[arg(long, value_name = "N", default_value_t = Options::default().max_popularity)]
    max_popularity: u32,
    /// Variables that the left side of a rule may have, from 1 to 5; each one more costs time
    #[arg(long, value_name = "N", default_value_t = Options::default().max_left,
        value_parser = clap::value_parser!(u32).range(1..=MOST_LEFT as i64))]
    max_left: u32,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
struct Output {
    /// Rules and findings to show on the terminal
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print the report as JSON
    #[arg(long, conflicts_with = "sarif")]
    json: bool,
    /// Print the findings as SARIF 2.1.0
    #[arg(long)]
    sarif: bool,
    /// Write the answer to a file
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show the supporters and violators of a rule, such as 'write(S::a) => any(S::b)'
    #[arg(long, value_name = "RULE", conflicts_with = "sarif")]
    explain: Option<String>,
    /// Show how the rules are distributed over variables and forms
    #[arg(long, conflicts_with_all = ["sarif", "explain"])]
    distribution: bool,
    /// Show how many rules and findings there are with each threshold changed
    #[arg(long, conflicts_with_all = ["sarif", "explain", "distribution"])]
    sensitivity: bool,
    /// Store the rules in this database; those of other trees in it are kept
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
    /// Name of the tree in the database [default: that of its folder]
    #[arg(long, value_name = "NAME")]
    tree_name: Option<String>,
    /// Write every access, one JSON object a line
    #[arg(long, value_name = "FILE")]
    accesses: Option<PathBuf>,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Accepted findings")]
struct Accepted {
    /// Apply the rules of this earlier JSON report, and report only what is new since
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Findings to silence, one a line: FILE FUNCTION VARIABLE REASON
    #[arg(long, value_name = "FILE")]
    suppressions: Option<PathBuf>,
}

impl Correlate {
    /// Runs the analysis and prints what it found.
    pub fn run(self) -> anyhow::Result<Exit> {
        let request = self.request()?;
        let data = self.output.json || self.output.sarif;
        let mut destination = Destination::answer(self.output.file.as_deref(), data)?;
        // Everything that can be wrong with the input is read before the long work.
        let accepted = self.accepted.suppressions()?;
        let baseline = self.accepted.baseline()?;
        let stored = self.output.stored()?;
        let mut analysis = run(&request)?;
        if let Some(rule) = &self.output.explain {
            let rule = explain::read_rule(&analysis, rule)?;
            let explained = if self.output.json {
                json::result("correlate", explanation::json(&analysis, &rule))
            } else {
                explanation::text(&analysis, &rule, destination.style())
            };
            destination.write(&explained)?;
            return Ok(Exit::Clean);
        }
        if self.output.distribution || self.output.sensitivity {
            let text = self.output.statistics(analysis, destination.style());
            destination.write(&text)?;
            return Ok(Exit::Clean);
        }
        // What is stored is the tree as it is, not what a baseline makes of it.
        self.store(stored, &analysis)?;
        let known = baseline.map_or(0, |baseline| analysis.against(&baseline));
        let suppressed = analysis.suppress(&accepted);
        let findings = analysis.findings();
        let text = self.report(&analysis, &findings, suppressed + known, destination.style());
        destination.write(&text)?;
        Ok(if findings.is_empty() { Exit::Clean } else { Exit::Findings })
    }

    fn request(&self) -> anyhow::Result<Request> {
        let share = self.thresholds.options().min_confidence;
        anyhow::ensure!(
            (0.0..=1.0).contains(&share),
            "--min-confidence is {share}, it must lie between 0 and 1"
        );
        let mut library = Library::builtin();
        for path in &self.summaries {
            library.extend(&read(path)?).with_context(|| path.display().to_string())?;
        }
        Ok(Request {
            roots: self.source.clone(),
            headers: self.headers.clone(),
            exclusions: Exclusions {
                patterns: self.exclude.clone(),
                all_folders: self.all_folders,
            },
            library,
            options: self.thresholds.options(),
            by_size: self.thresholds.by_size(),
            max_file_size: self.max_file_size << 20,
        })
    }

    fn store(&self, stored: Option<Database>, analysis: &Analysis) -> anyhow::Result<()> {
        if let (Some(path), Some(mut database)) = (&self.output.database, stored) {
            database.merge(Database::of(analysis, &self.tree_name()));
            write(path, &database.write())?;
        }
        if let Some(path) = &self.output.accesses {
            write(path, &text::accesses(analysis))?;
        }
        Ok(())
    }

    fn tree_name(&self) -> String {
        let folder = || {
            let first = std::fs::canonicalize(&self.source[0]).ok()?;
            Some(first.file_name()?.to_string_lossy().into_owned())
        };
        self.output.tree_name.clone().or_else(folder).unwrap_or_else(|| "tree".into())
    }

    fn report(
        &self,
        analysis: &Analysis,
        found: &[Finding],
        silenced: usize,
        style: Style,
    ) -> String {
        if self.output.json {
            let rules: Vec<_> =
                analysis.rules.iter().map(|it| text::rule_json(analysis, it)).collect();
            let known = Baseline::of(analysis);
            let details = json!({
                "summary": text::summary_json(analysis, silenced),
                "skipped": analysis.tree.skipped,
                "rules": rules,
                "violations": known.violations,
                "functions": known.functions,
            });
            json::render("correlate", found, details)
        } else if self.output.sarif {
            let meaning = "A function updates a variable and forgets one that goes with it";
            sarif::render(found, &sarif::Kinds::from([(report::KIND, meaning)]))
        } else {
            text::report(analysis, found, silenced, self.output.limit, style)
        }
    }
}

impl Thresholds {
    /// The thresholds that are not given, and may be lowered in a small tree.
    fn by_size(&self) -> BySize {
        BySize {
            support: self.min_support.is_none(),
            direct_support: self.min_direct_support.is_none(),
            confidence: self.min_confidence.is_none(),
        }
    }

    fn options(&self) -> Options {
        let usual = Options::default();
        Options {
            min_support: self.min_support.unwrap_or(usual.min_support),
            min_direct_support: self.min_direct_support.unwrap_or(usual.min_direct_support),
            min_confidence: self.min_confidence.unwrap_or(usual.min_confidence),
            max_distance: self.max_distance,
            max_popularity: self.max_popularity,
            max_left: self.max_left,
        }
    }
}

impl Output {
    /// The figures that were asked for.
    fn statistics(&self, analysis: Analysis, style: Style) -> String {
        let (data, text) = if self.distribution {
            let found = statistics::distribution(&analysis);
            (json!({"distribution": found}), tables::distribution(&found, style))
        } else {
            let (_, settings) = statistics::sensitivity(analysis, &Silent);
            (json!({"sensitivity": settings}), tables::sensitivity(&settings, style))
        };
        if self.json { json::result("correlate", data) } else { text }
    }

    /// The database that the rules will be merged into.
    fn stored(&self) -> anyhow::Result<Option<Database>> {
        let Some(path) = &self.database else { return Ok(None) };
        if !path.exists() {
            return Ok(Some(Database::default()));
        }
        let database = Database::read(&read(path)?);
        Ok(Some(database.with_context(|| path.display().to_string())?))
    }
}

impl Accepted {
    fn suppressions(&self) -> anyhow::Result<Vec<suppress::Accepted>> {
        let Some(path) = &self.suppressions else { return Ok(Vec::new()) };
        suppress::read(&read(path)?).with_context(|| path.display().to_string())
    }

    fn baseline(&self) -> anyhow::Result<Option<Baseline>> {
        let Some(path) = &self.baseline else { return Ok(None) };
        let baseline = || {
            let text = read(path)?;
            let findings = json::findings(&text)?;
            let report: Value = serde_json::from_str(&text)?;
            // Format 1 called it otherwise.
            let rules = report.get("result").unwrap_or(&report["details"]);
            text::baseline(rules, &findings)
        };
        baseline().map(Some).with_context(|| path.display().to_string())
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

fn run(request: &Request) -> anyhow::Result<Analysis> {
    let analysis = if std::io::stderr().is_terminal() {
        let bar = Bar::default();
        let analysis = correlate::analyse(request, &bar);
        bar.clear();
        analysis
    } else {
        correlate::analyse(request, &Silent)
    };
    Ok(analysis?)
}

/// Progress on the terminal.
#[derive(Default)]
struct Bar(Mutex<Option<ProgressBar>>);

impl Bar {
    fn clear(&self) {
        if let Some(bar) = self.0.lock().ok().and_then(|mut it| it.take()) {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bar {
    fn begin(&self, stage: Stage, steps: usize) {
        self.clear();
        let name = match stage {
            Stage::Macros => "macros",
            Stage::Declarations => "declarations",
            Stage::Accesses => "accesses",
            Stage::Mining => "correlations",
        };
        let style = ProgressStyle::with_template("{msg:<14} {wide_bar} {pos}/{len}");
        let bar = ProgressBar::new(steps as u64).with_message(name);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        if let Ok(mut slot) = self.0.lock() {
            *slot = Some(bar);
        }
    }

    fn step(&self) {
        if let Some(bar) = self.0.lock().ok().as_ref().and_then(|it| it.as_ref()) {
            bar.inc(1);
        }
    }
}
