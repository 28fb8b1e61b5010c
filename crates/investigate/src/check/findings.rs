//! What rules found in a run, for a reader: one bug is one finding, however many ways lead to it and however
//! often it happens, in an order that is the same each time.

use super::coverage::Coverage;
use super::leaks::Leaks;
use super::modules::Modules;
use super::suspicion::SuspicionReport;
use super::watch::Located;
use analyze::rules::detector::Undecided;
use analyze::rules::hit::{BlockHistory, Hit, Subject, union};
use analyze::rules::report::{self, frames};
use analyze::rules::stream::Stream;
use analyze::rules::suppress::{self, NamedFrame, Suppression};
use base::{Finding, Place, Role, Step, When};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use symbols::Program;

/// Frames that suppressions look at.
const MOST_FRAMES: usize = 24;
/// Frames that make two histories of a block the same.
const SAME_FRAMES: usize = 6;
/// Other places of a finding that are kept.
const MOST_PLACES: usize = 32;

/// Behind the name of a rule in a suppression: its calls are those that made the block.
const ALLOCATED: &str = "/allocated";

/// The rule about pointers that lead nowhere.
const NULL: &str = "null-pointer";

/// What two hits of a rule have in common if they are one bug.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Common {
    /// The line of the program's own code: the same store, or the same idiom.
    Line(Place),
    /// The block, told by where it was and who made it.
    Block { process: i32, begin: u64, made: Vec<u64> },
    /// Who made and who freed the block, though it be another block.
    History { made: Vec<u64>, freed: Vec<u64> },
    /// Who made what is lost.
    Lost(Vec<u64>),
}

/// What a crash is compared with.
#[derive(Clone, Default)]
pub(super) struct Facts {
    /// The instructions that it was found at.
    pub instructions: BTreeSet<u64>,
    /// All memory that it accessed, or was about to.
    pub touched: Option<(u64, u64)>,
    /// The same if it wrote there.
    pub written: Option<(u64, u64)>,
    /// Whether it damages the heap, or a stack.
    pub heap: bool,
    /// See above.
    pub stack: bool,
}

impl Facts {
    fn of(hit: &Hit) -> Self {
        let block = hit.block.as_ref();
        let of_heap = block.is_some_and(|block| block.heap);
        let of_stack = block.is_some_and(|block| !block.heap && !block.global);
        Self {
            instructions: hit.stack.first().copied().into_iter().collect(),
            touched: hit.extent,
            written: hit.extent.filter(|_| hit.corrupts()),
            heap: hit.corrupts() && (of_heap || matches!(hit.subject, Subject::Release { .. })),
            stack: hit.corrupts() && of_stack,
        }
    }

    fn join(&mut self, other: Self) {
        self.instructions.extend(other.instructions);
        self.touched = union(self.touched, other.touched);
        self.written = union(self.written, other.written);
        self.heap |= other.heap;
        self.stack |= other.stack;
    }
}

/// A finding that is told once, however often and in however many processes it was made.
pub(super) struct Reported {
    pub finding: Finding,
    suppression: String,
    count: u64,
    pub processes: BTreeSet<i32>,
    /// The ways that led there.
    paths: BTreeSet<u64>,
    /// Other places, in the order in which they were met.
    also: Vec<(Place, Option<When>)>,
    /// Other places that are not kept.
    elsewhere: usize,
    common: Vec<Common>,
    pub facts: Facts,
    /// Whether the program crashed because of it.
    pub fatal: bool,
}

impl Reported {
    fn join(&mut self, other: Self) {
        self.count += other.count;
        self.processes.extend(other.processes);
        self.paths.extend(other.paths);
        self.facts.join(other.facts);
        self.common.extend(other.common);
        self.elsewhere += other.elsewhere;
        let first = other.finding.place.map(|place| (place, other.finding.when));
        for (place, when) in first.into_iter().chain(other.also) {
            let is_known = |known: &Place| line(known) == line(&place);
            if self.finding.place.as_ref().is_some_and(is_known)
                || self.also.iter().any(|(known, _)| is_known(known))
            {
                continue;
            }
            match self.also.len() < MOST_PLACES {
                true => self.also.push((place, when)),
                false => self.elsewhere += 1,
            }
        }
    }

    fn finding(&self) -> Finding {
        let mut finding = self.finding.clone();
        for (place, when) in &self.also {
            let step = Step::new("also").as_a(Role::Also).at(place.clone()).at_time(*when);
            finding.evidence.push(step);
        }
        if self.elsewhere > 0 {
            let text = format!("also at {} more places", self.elsewhere);
            finding.evidence.push(Step::new(text).as_a(Role::Also));
        }
        let times = report::times(self.count, self.paths.len(), self.processes.len());
        finding.evidence.extend(times);
        finding
    }
}

/// What stays of a place if several instructions make up a line.
pub(super) fn line(place: &Place) -> Place {
    match place.line {
        Some(_) => Place { address: None, ..place.clone() },
        None => place.clone(),
    }
}

/// What was found.
#[derive(Default)]
pub struct RuleFindings {
    /// What is told, in the order of the run.
    pub(super) told: Vec<Reported>,
    /// Where what findings of a rule have in common was met first.
    pub(super) known: HashMap<(String, Common), usize>,
    /// Findings that were suppressed.
    pub suppressed: usize,
    /// Findings that are harmless by design: why, and how many.
    pub set_aside: BTreeMap<String, usize>,
    /// Rules that could not always be decided.
    pub undecided: Vec<Undecided>,
    /// Findings beyond those that are kept.
    pub dropped: u64,
    /// Whether the program was ended at the first of them.
    pub stopped: bool,
    /// The processes in which anything was found or suspected.
    pub suspicious: BTreeSet<i32>,
    /// What was suspected.
    pub suspicions: Vec<SuspicionReport>,
    /// The processes in which a return went where no call comes back to.
    pub returned: BTreeSet<i32>,
    /// Whether something was suspicious and was not checked.
    pub unfollowed: bool,
    /// Whether events were lost on their way, or make no sense.
    pub broken: bool,
    /// What was checked, where somebody has kept account of it.
    pub coverage: Option<Coverage>,
    /// Functions that were looked for and found.
    pub functions: BTreeSet<String>,
    /// The processes, where they have numbers that are the same in every run.
    pub(super) located: HashMap<i32, Located>,
    /// What was left in the heap, if that was looked at.
    pub leaks: Option<Leaks>,
    /// A failure that the program told of and that its end does not show, such as a panic.
    pub failure: Option<Finding>,
}

impl RuleFindings {
    /// With what was found elsewhere.
    pub fn extend(&mut self, other: Self) {
        other.told.into_iter().for_each(|told| self.tell(told));
        self.suppressed += other.suppressed;
        for (why, count) in other.set_aside {
            *self.set_aside.entry(why).or_default() += count;
        }
        self.undecided.extend(other.undecided);
        self.dropped += other.dropped;
        self.stopped |= other.stopped;
        self.unfollowed |= other.unfollowed;
        self.broken |= other.broken;
        self.suspicious.extend(other.suspicious);
        self.returned.extend(other.returned);
        self.suspicions.extend(other.suspicions);
        self.functions.extend(other.functions);
        self.located.extend(other.located);
        self.leaks = match (self.leaks.take(), other.leaks) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
    }

    /// With what was found of a process by other means than rules, ahead of what they found.
    pub fn add_first(&mut self, process: i32, finding: Finding) {
        // Where control has come to by mistake a rule finds a mistake at an innocent line.
        self.told.retain(|told| told.finding.kind != NULL || !told.processes.contains(&process));
        self.known.clear();
        let place = finding.place.as_ref().map(|place| Common::Line(line(place)));
        self.told.insert(
            0,
            Reported {
                suppression: suppress::write(&finding.kind, &[]),
                count: 1,
                processes: BTreeSet::from([process]),
                paths: BTreeSet::new(),
                also: Vec::new(),
                elsewhere: 0,
                common: place.into_iter().collect(),
                facts: Facts::default(),
                fatal: true,
                finding,
            },
        );
        self.suspicious.insert(process);
    }

    /// Only the first of all findings.
    pub fn keep_first(&mut self) {
        self.told.truncate(1);
        self.known.clear();
    }

    /// With what was found in the run itself, but for what is told better here: with its chains.
    pub fn supplement(&mut self, light: Self) {
        let place =
            |told: &Reported| (told.finding.kind.clone(), told.finding.place.as_ref().map(line));
        let known: Vec<_> = self.told.iter().map(place).collect();
        let is_new = |told: &Reported| !known.contains(&place(told));
        let told = light.told.into_iter().filter(is_new).collect();
        self.extend(Self { told, known: HashMap::new(), ..light });
    }

    /// In which order they are told: what the program crashed of, then by certainty, then as they happened.
    fn order(&self) -> Vec<&Reported> {
        let mut order: Vec<usize> = (0..self.told.len()).collect();
        order.sort_by_key(|index| self.rank(*index));
        order.into_iter().map(|index| &self.told[index]).collect()
    }

    pub(super) fn rank(&self, index: usize) -> impl Ord + use<> {
        let told = &self.told[index];
        (!told.fatal, std::cmp::Reverse(told.finding.confidence), index)
    }

    /// The findings.
    pub fn findings(&self) -> Vec<Finding> {
        self.order().into_iter().map(Reported::finding).collect()
    }

    /// Suppressions for them.
    pub fn suppressions(&self) -> impl Iterator<Item = &str> {
        self.order().into_iter().map(|told| told.suppression.as_str())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    fn tell(&mut self, told: Reported) {
        let kind = told.finding.kind.clone();
        let key = |common: &Common| (kind.clone(), common.clone());
        let mut same: BTreeSet<usize> =
            told.common.iter().filter_map(|common| self.known.get(&key(common)).copied()).collect();
        let Some(first) = same.pop_first() else {
            let index = self.told.len();
            self.known.extend(told.common.iter().map(|common| (key(common), index)));
            self.told.push(told);
            return;
        };
        self.known.extend(told.common.iter().map(|common| (key(common), first)));
        self.told[first].join(told);
        // One more may show that two are one. From the last on, so that the others keep their numbers.
        for index in same.into_iter().rev() {
            let other = self.told.remove(index);
            self.told[first].join(other);
            for number in self.known.values_mut() {
                match (*number).cmp(&index) {
                    std::cmp::Ordering::Equal => *number = first,
                    std::cmp::Ordering::Greater => *number -= 1,
                    std::cmp::Ordering::Less => {}
                }
            }
        }
    }

    /// Adds a finding that no hit stands for: what is lost, by who made it.
    pub(super) fn add_lost(
        &mut self,
        process: i32,
        finding: Finding,
        (made, frames): (Vec<u64>, &[NamedFrame]),
    ) {
        self.tell(Reported {
            suppression: suppress::write(&finding.kind, frames),
            count: 1,
            processes: BTreeSet::from([process]),
            paths: BTreeSet::new(),
            also: Vec::new(),
            elsewhere: 0,
            common: vec![Common::Lost(made)],
            facts: Facts::default(),
            fatal: false,
            finding,
        });
    }

    /// Adds what was found in a stream of a process.
    pub fn add_stream(
        &mut self,
        process: i32,
        stream: &Stream,
        (modules, suppressions): (&Modules, &[Suppression]),
        located: Option<&Located>,
    ) {
        let detector = stream.detector();
        self.broken |= stream.broken;
        self.undecided.extend(detector.undecided());
        self.dropped += detector.dropped();
        self.functions.extend(modules.functions(0).into_iter().map(|(_, name)| name));
        if let Some(located) = located {
            self.located.insert(process, located.clone());
        }
        if detector.hits().is_empty() {
            return;
        }
        let program = modules.program();
        for hit in detector.hits() {
            if detector.is_of_scan(hit) && sets_scans_aside(suppressions) {
                self.set_scan_aside();
                continue;
            }
            self.add((process, located), hit, &program, suppressions);
        }
    }

    /// Adds what a rule found in a process.
    pub fn add(
        &mut self,
        (process, located): (i32, Option<&Located>),
        hit: &Hit,
        program: &Program,
        suppressions: &[Suppression],
    ) {
        if let Some(located) = located {
            self.located.entry(process).or_insert_with(|| located.clone());
        }
        let named = named(report::origin(hit), program);
        if self.is_set_aside(&hit.rule, &named, suppressions)
            || self.is_set_aside_by_block(hit, program, suppressions)
        {
            return;
        }
        let when = |stamp| located.and_then(|located| located.when(stamp));
        let finding = report::finding(hit, &report::Context { program, when: &when });
        let common = common(process, hit, finding.place.as_ref());
        self.tell(Reported {
            suppression: suppress::write(&hit.rule, &named),
            count: hit.count,
            processes: BTreeSet::from([process]),
            paths: BTreeSet::from([digest(&hit.stack)]),
            also: Vec::new(),
            elsewhere: 0,
            common,
            facts: Facts::of(hit),
            fatal: false,
            finding,
        });
    }

    /// A collector has looked through the stack.
    pub(super) fn set_scan_aside(&mut self) {
        let why = "a collector looks through the stack for whatever may be a pointer";
        *self.set_aside.entry(why.to_owned()).or_default() += 1;
    }

    /// Without what a rule found that nobody chose.
    pub(super) fn forget(&mut self, rule: &str) {
        let told = std::mem::take(&mut self.told);
        self.known.clear();
        told.into_iter().filter(|told| told.finding.kind != rule).for_each(|told| self.tell(told));
    }

    /// Whether somebody does not want to see a finding, and who.
    pub(super) fn is_set_aside(
        &mut self,
        rule: &str,
        frames: &[NamedFrame],
        suppressions: &[Suppression],
    ) -> bool {
        match suppressions.iter().find(|one| one.covers(rule, frames)) {
            Some(one) if one.shipped => *self.set_aside.entry(one.name.clone()).or_default() += 1,
            Some(_) => self.suppressed += 1,
            None => return false,
        }
        true
    }
}

impl RuleFindings {
    /// Whether nobody wants to see what is found about a block, by who made it.
    fn is_set_aside_by_block(
        &mut self,
        hit: &Hit,
        program: &Program,
        suppressions: &[Suppression],
    ) -> bool {
        let rule = format!("{}{ALLOCATED}", hit.rule);
        let concerned: Vec<Suppression> =
            suppressions.iter().filter(|one| one.is_about(&rule)).cloned().collect();
        let made = hit.block.as_ref().filter(|_| !concerned.is_empty());
        made.is_some_and(|block| {
            self.is_set_aside(&rule, &named(&block.allocated, program), &concerned)
        })
    }
}

/// Whether what is harmless by design is set aside.
pub(super) fn sets_scans_aside(suppressions: &[Suppression]) -> bool {
    suppressions.iter().any(|one| one.shipped)
}

fn digest(stack: &[u64]) -> u64 {
    let mut hasher = DefaultHasher::new();
    stack.hash(&mut hasher);
    hasher.finish()
}

/// What a hit shares with others that are the same bug.
fn common(process: i32, hit: &Hit, place: Option<&Place>) -> Vec<Common> {
    let inner = |stack: &[u64]| stack.iter().take(SAME_FRAMES).copied().collect::<Vec<u64>>();
    if report::is_lost(hit) {
        return vec![Common::Lost(report::origin(hit).to_vec())];
    }
    let mut common: Vec<Common> =
        place.map(|place| Common::Line(line(place))).into_iter().collect();
    // A frame as a whole is many variables.
    let is_one = |block: &&BlockHistory| block.heap || block.global || block.local;
    if let Some(block) = hit.block.as_ref().filter(is_one) {
        let made = inner(&block.allocated);
        common.push(Common::Block { process, begin: block.begin, made: made.clone() });
        if let Some(freed) = &block.freed {
            common.push(Common::History { made, freed: inner(freed) });
        }
    }
    common
}

/// The calls of a stack as suppressions see them, inlined ones too.
pub(super) fn named(stack: &[u64], program: &Program) -> Vec<NamedFrame> {
    let frame = |frame: frames::Frame| NamedFrame {
        function: frame.place.function,
        object: frame.module.map(|path| path.display().to_string()),
    };
    frames::frames(stack, program).into_iter().take(MOST_FRAMES).map(frame).collect()
}
