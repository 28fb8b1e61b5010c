//! What is known of a program from many runs: its **points**, by where they are in the source.

use crate::uses::{Definition, Use};
use crate::value::{Hypothesis, Kind};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Which line of which function, as a rebuilt program still has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LineKey {
    /// The file that the code is in, without its folder.
    pub module: String,
    /// The function, demangled.
    pub function: String,
    /// Lines from the first of the function; without debug information there is none.
    pub line: Option<i32>,
}

/// An instruction by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SiteKey {
    /// Its line.
    pub line: LineKey,
    /// Which of the instructions of the line; without lines, how many bytes into the function.
    pub rank: u32,
}

/// An instruction of the program, or what stands for all that is not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// By name.
    pub key: SiteKey,
    /// Its source file, if that is known.
    pub file: Option<String>,
    /// Its line there, from 1.
    pub line: Option<u32>,
}

/// The number of a site in its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SiteId(pub u32);

impl SiteId {
    /// Whoever wrote what nobody was seen to write: the loader, and what is not the program's own.
    pub const EXTERNAL: Self = Self(0);
}

/// An expression that is tracked at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// What is read.
    Read,
    /// What is written.
    Written,
    /// What is written, less what was there.
    Difference,
    /// An argument of a call, from 0.
    Argument(u8),
    /// What a call returns.
    Result,
    /// An argument where a function is entered, from 0.
    Entry(u8),
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => out.write_str("read"),
            Self::Written => out.write_str("written"),
            Self::Difference => out.write_str("difference"),
            Self::Argument(number) => write!(out, "argument {}", number + 1),
            Self::Result => out.write_str("result"),
            Self::Entry(number) => write!(out, "parameter {}", number + 1),
        }
    }
}

/// What is known of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Where it is.
    pub site: Site,
    /// What it accesses or calls, if that has a name: a variable, a function.
    pub what: Option<String>,
    /// Its tracked expressions, sorted by role.
    pub values: Vec<(Role, Hypothesis)>,
    /// What is known of it as a read.
    pub reads: Option<Use>,
    /// What is known of it as a write.
    pub writes: Option<Definition>,
}

/// What is known of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The file name of the program.
    pub program: String,
    /// Runs that were learned from.
    pub runs: u32,
    /// Everything by site; the first is [`SiteId::EXTERNAL`].
    pub points: Vec<Point>,
    /// Lines that were executed, and in how many runs.
    pub executed: BTreeMap<LineKey, u32>,
    /// Names of kinds of objects.
    pub kinds: Vec<String>,
    #[serde(skip)]
    sites: FxHashMap<SiteKey, SiteId>,
    #[serde(skip)]
    kind_numbers: FxHashMap<String, Kind>,
}

impl Point {
    fn new(site: Site) -> Self {
        Self { site, what: None, values: Vec::new(), reads: None, writes: None }
    }

    /// What is supposed of one of its expressions.
    pub fn hypothesis(&mut self, role: Role) -> &mut Hypothesis {
        let at = match self.values.binary_search_by_key(&role, |(role, _)| *role) {
            Ok(at) => at,
            Err(at) => {
                self.values.insert(at, (role, Hypothesis::default()));
                at
            }
        };
        &mut self.values[at].1
    }

    /// What it is the result of, or where: for a reader.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.reads.is_none() && self.writes.is_none()
    }
}

impl Site {
    /// Stands for what is not seen.
    #[must_use]
    pub fn external() -> Self {
        let line = LineKey { module: String::new(), function: String::new(), line: None };
        Self { key: SiteKey { line, rank: 0 }, file: None, line: None }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = &self.key.line.function;
        match (&self.file, self.line) {
            _ if self.key.line.module.is_empty() => out.write_str("outside the program"),
            (Some(file), Some(line)) => {
                let name = file.rsplit('/').next().unwrap_or(file);
                write!(out, "{name}:{line} ({function})")
            }
            _ => write!(out, "{function}+{:#x}", self.key.rank),
        }
    }
}

impl Model {
    /// Of a program of which nothing is known.
    #[must_use]
    pub fn new(program: impl Into<String>) -> Self {
        let mut model = Self {
            program: program.into(),
            runs: 0,
            points: Vec::new(),
            executed: BTreeMap::new(),
            kinds: Vec::new(),
            sites: FxHashMap::default(),
            kind_numbers: FxHashMap::default(),
        };
        model.site(&Site::external());
        model
    }

    /// After it was read from a file: whether its parts fit together, and then its indexes.
    pub(crate) fn completed(mut self) -> Option<Self> {
        let (points, kinds) = (self.points.len(), self.kinds.len());
        (self.points.first()?.site == Site::external()).then_some(())?;
        for (number, point) in self.points.iter().enumerate() {
            let known = |site: SiteId| (site.0 as usize) < points;
            let uses = point.reads.iter().flat_map(|one| &one.definitions);
            uses.clone().all(|pair| known(pair.site)).then_some(())?;
            uses.map(|pair| pair.site).is_sorted().then_some(())?;
            let of_values = point.values.iter().flat_map(|(_, one)| &one.kinds);
            of_values.clone().all(|kind| (kind.0 as usize) < kinds).then_some(())?;
            point.values.is_sorted_by(|one, other| one.0 < other.0).then_some(())?;
            point.values.iter().all(|(_, one)| one.kinds.is_sorted()).then_some(())?;
            let before = self.sites.insert(point.site.key.clone(), SiteId(number as u32));
            before.is_none().then_some(())?;
        }
        for (number, name) in self.kinds.iter().enumerate() {
            let before = self.kind_numbers.insert(name.clone(), Kind(number as u32));
            before.is_none().then_some(())?;
        }
        Some(self)
    }

    /// The number of a site, which is new if it was never heard of.
    pub fn site(&mut self, site: &Site) -> SiteId {
        if let Some(known) = self.sites.get(&site.key) {
            // The program may have been built anew: what is told is where it is now.
            let place = &mut self.points[known.0 as usize].site;
            (place.file, place.line) = (site.file.clone(), site.line);
            return *known;
        }
        let id = SiteId(self.points.len() as u32);
        self.sites.insert(site.key.clone(), id);
        self.points.push(Point::new(site.clone()));
        id
    }

    /// The number of a kind of objects.
    pub fn kind(&mut self, name: &str) -> Kind {
        if let Some(known) = self.kind_numbers.get(name) {
            return *known;
        }
        let kind = Kind(self.kinds.len() as u32);
        self.kind_numbers.insert(name.to_owned(), kind);
        self.kinds.push(name.to_owned());
        kind
    }

    /// What is known of a site.
    #[must_use]
    pub fn point(&self, site: SiteId) -> &Point {
        &self.points[site.0 as usize]
    }

    /// What is known of a site, to change.
    pub fn point_mut(&mut self, site: SiteId) -> &mut Point {
        &mut self.points[site.0 as usize]
    }

    /// Points of which anything is known.
    pub fn known_points(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| !point.is_empty())
    }

    /// Adds what another model knows, of other runs of the same program.
    pub fn merge(&mut self, other: &Self) {
        let kinds: Vec<Kind> = other.kinds.iter().map(|name| self.kind(name)).collect();
        let sites: Vec<SiteId> = other.points.iter().map(|point| self.site(&point.site)).collect();
        for (point, id) in other.points.iter().zip(&sites) {
            let own = &mut self.points[id.0 as usize];
            own.site.clone_from(&point.site);
            if own.what.is_none() {
                own.what.clone_from(&point.what);
            }
            for (role, hypothesis) in &point.values {
                let mut renumbered = hypothesis.clone();
                let number = |kind: &Kind| kinds[kind.0 as usize];
                renumbered.kinds = hypothesis.kinds.iter().map(number).collect();
                own.hypothesis(*role).merge(&renumbered);
            }
            if let Some(reads) = &point.reads {
                let number = |site: SiteId| sites[site.0 as usize];
                own.reads.get_or_insert_default().merge(reads, number);
            }
            if let Some(writes) = &point.writes {
                own.writes.get_or_insert_default().merge(writes);
            }
        }
        for (line, runs) in &other.executed {
            let known = self.executed.entry(line.clone()).or_default();
            *known = known.saturating_add(*runs);
        }
        self.runs = self.runs.saturating_add(other.runs);
    }
}
