//! Running code against a specification: the history of the functions that implement an object is taken out of a
//! recording, and judged by what the operations mean one after the other (`linearize::observed`).

use crate::case::Case;
use crate::check::recorded;
use crate::history::{self, Call, Function, Happened, History};
use anyhow::{Context, bail, ensure};
use base::{Confidence, Finding, Place, Step};
use linearize::model::Program;
use linearize::observed::{self, Explained, Form, Seen, Unfit};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The operation that stands for a constructor: from its return on an object is a new one.
const NEW: &str = "new";
/// Calls and returns that a finding shows.
const MOST_SHOWN: usize = 16;

/// Which function implements an operation: `OPERATION=FUNCTION`, or with its parameters
/// `OPERATION=FUNCTION(object, v, _)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implemented {
    operation: String,
    function: String,
    parameters: Option<Vec<Part>>,
}

/// What a parameter of a function is to the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Which object is meant.
    Object,
    /// The operation's next argument.
    Argument,
    /// Nothing.
    Ignored,
}

impl FromStr for Implemented {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            || format!("'{text}': expected OPERATION=FUNCTION or OPERATION=FUNCTION(object, v, _)");
        let (operation, rest) = text.split_once('=').ok_or_else(form)?;
        let (function, parameters) = match rest.split_once('(') {
            None => (rest, None),
            Some((function, list)) => {
                let list = list.strip_suffix(')').ok_or_else(form)?;
                let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
                (function, Some(words.map(part).collect()))
            }
        };
        let [operation, function] = [operation, function].map(|name| name.trim().to_owned());
        if operation.is_empty() || function.is_empty() {
            return Err(form());
        }
        Ok(Self { operation, function, parameters })
    }
}

fn part(word: &str) -> Part {
    match word {
        "object" => Part::Object,
        "_" => Part::Ignored,
        _ => Part::Argument,
    }
}

/// What came of it.
pub struct Answer {
    /// A finding for each object whose history no order explains.
    pub findings: Vec<Finding>,
    /// Objects that were looked at.
    pub objects: usize,
    /// Calls that were.
    pub calls: usize,
    /// Objects whose histories have too many orders to be followed to their end.
    pub undecided: usize,
}

/// Judges the calls of a recorded process by a specification.
pub fn find(
    case: &Case,
    process: u32,
    specification: &Program,
    implemented: &[Implemented],
) -> anyhow::Result<Answer> {
    let names: Vec<String> = implemented.iter().map(|one| one.function.clone()).collect();
    let functions = history::functions(case, process, &names)?;
    let mut roles = Vec::new();
    for (one, function) in implemented.iter().zip(&functions) {
        roles.push(role(specification, one, function)?);
    }
    let history = history::of(case, process, &functions)?;
    let program = case.program(&recorded::mapped(case.session(), process)?)?;
    let places: Vec<Place> =
        functions.iter().map(|function| program.symbolise(function.entry).place()).collect();
    let objects = objects(&history, &roles);
    let mut answer =
        Answer { findings: Vec::new(), objects: 0, calls: history.calls.len(), undecided: 0 };
    for object in objects.iter().filter(|object| !object.seen.is_empty()) {
        answer.objects += 1;
        match observed::explain(specification, &object.seen) {
            Explained::Whole => {}
            Explained::Undecided { .. } => answer.undecided += 1,
            Explained::Not { at } => {
                let teller =
                    Teller { history: &history, implemented, roles: &roles, places: &places };
                answer.findings.push(teller.finding(object, at));
            }
        }
    }
    Ok(answer)
}

/// What a function is: a constructor, or an operation, with what its parameters are.
struct Role {
    /// `None` for a constructor.
    form: Option<Form>,
    parameters: Vec<Part>,
}

fn role(program: &Program, one: &Implemented, function: &Function) -> anyhow::Result<Role> {
    let taken = function.signature.parameters.len();
    if one.operation == NEW {
        let default = || vec![Part::Object; taken.min(1)];
        return Ok(Role { form: None, parameters: one.parameters.clone().unwrap_or_else(default) });
    }
    let form = observed::form(program, &one.operation).map_err(|unfit| refused(one, &unfit))?;
    let parameters = match &one.parameters {
        Some(parameters) => parameters.clone(),
        None if taken == form.arguments => vec![Part::Argument; taken],
        None if taken == form.arguments + 1 => {
            [vec![Part::Object], vec![Part::Argument; form.arguments]].concat()
        }
        None => bail!(
            "{} takes {taken} parameters and {} {}; say what each is: --map '{}={}(object, v, _)'",
            one.function,
            one.operation,
            form.arguments,
            one.operation,
            one.function
        ),
    };
    let given = parameters.iter().filter(|part| **part == Part::Argument).count();
    ensure!(
        given == form.arguments && parameters.len() <= taken,
        "{} has {} arguments and {} takes {taken} parameters, of which {given} are named",
        one.operation,
        form.arguments,
        one.function
    );
    ensure!(
        !form.returns || function.signature.returns.is_some(),
        "{} returns a number, and {} returns none",
        one.operation,
        one.function
    );
    Ok(Role { form: Some(form), parameters })
}

fn refused(one: &Implemented, unfit: &Unfit) -> anyhow::Error {
    let name = &one.operation;
    match unfit {
        Unfit::Unknown(known) => anyhow::anyhow!(
            "the specification has no operation '{name}'; it has {}",
            known.join(", ")
        ),
        Unfit::Internal => anyhow::anyhow!(
            "the specification has internal operations, which cannot be seen in a program; say with \
             `abstract` what callers see"
        ),
        Unfit::Shape => anyhow::anyhow!(
            "{name} takes or returns a node, or returns several numbers; calls of a program are judged by \
             numbers, one of them returned"
        ),
    }
}

/// What was seen of one object.
#[derive(Default)]
struct Object {
    seen: Vec<Seen>,
    /// What each was in the whole history.
    happened: Vec<Happened>,
    /// The numbers of its calls.
    calls: Vec<usize>,
}

/// The history of each object: one for each value of the parameter that says which is meant.
fn objects(history: &History, roles: &[Role]) -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    let mut present: BTreeMap<i64, usize> = BTreeMap::new();
    // Of each call: its object.
    let mut of_call: BTreeMap<usize, usize> = BTreeMap::new();
    for happened in &history.happened {
        let (Happened::Called(number) | Happened::Returned(number)) = *happened;
        let call = &history.calls[number];
        let role = &roles[call.function];
        let begins = matches!(happened, Happened::Called(_));
        let Some(form) = role.form else {
            if !begins {
                let made = named(call, role).or(call.result).unwrap_or_default();
                present.remove(&made);
            }
            continue;
        };
        if begins {
            let key = named(call, role).unwrap_or_default();
            let object = *present.entry(key).or_insert_with(|| {
                objects.push(Object::default());
                objects.len() - 1
            });
            of_call.insert(number, object);
            let arguments = values(call, role, Part::Argument).collect();
            objects[object].seen.push(Seen::Called { operation: form.operation, arguments });
            objects[object].calls.push(number);
            objects[object].happened.push(*happened);
        } else if let Some(object) = of_call.get(&number) {
            let object = &mut objects[*object];
            let place = object.calls.iter().position(|known| *known == number);
            let results = call.result.filter(|_| form.returns).into_iter().collect();
            object.seen.extend(place.map(|call| Seen::Returned { call, results }));
            object.happened.push(*happened);
        }
    }
    objects
}

fn values<'a>(call: &'a Call, role: &'a Role, wanted: Part) -> impl Iterator<Item = i64> + 'a {
    let parts = role.parameters.iter().zip(&call.arguments);
    parts.filter(move |(part, _)| **part == wanted).map(|(_, value)| *value)
}

/// The object that a call is given.
fn named(call: &Call, role: &Role) -> Option<i64> {
    values(call, role, Part::Object).next()
}

struct Teller<'a> {
    history: &'a History,
    implemented: &'a [Implemented],
    roles: &'a [Role],
    places: &'a [Place],
}

impl Teller<'_> {
    fn finding(&self, object: &Object, at: usize) -> Finding {
        let (Happened::Called(last) | Happened::Returned(last)) = object.happened[at];
        let call = &self.history.calls[last];
        let first = (at + 1).saturating_sub(MOST_SHOWN);
        let mut evidence = Vec::new();
        if first > 0 {
            evidence.push(Step::new(format!("{first} calls and returns before are explained")));
        }
        evidence.extend(object.happened[first..=at].iter().map(|happened| self.step(*happened)));
        Finding {
            kind: "not-linearizable".into(),
            title: format!(
                "no order of the calls explains that {} of thread {} {}",
                self.written(call),
                call.thread,
                self.returned(call)
            ),
            confidence: Confidence::Certain,
            place: Some(self.places[call.function].clone()),
            when: None,
            evidence,
        }
    }

    fn step(&self, happened: Happened) -> Step {
        let (Happened::Called(number) | Happened::Returned(number)) = happened;
        let call = &self.history.calls[number];
        let (written, thread) = (self.written(call), call.thread);
        match happened {
            Happened::Called(_) => {
                let function = &self.implemented[call.function].function;
                let text = format!("thread {thread} calls {written}, {function}#{}", call.nth);
                Step::new(text).at(self.places[call.function].clone())
            }
            Happened::Returned(_) => {
                Step::new(format!("thread {thread}: {written} {}", self.returned(call)))
            }
        }
    }

    fn written(&self, call: &Call) -> String {
        let arguments: Vec<String> = values(call, &self.roles[call.function], Part::Argument)
            .map(|it| it.to_string())
            .collect();
        format!("{}({})", self.implemented[call.function].operation, arguments.join(", "))
    }

    fn returned(&self, call: &Call) -> String {
        let returns = self.roles[call.function].form.is_some_and(|form| form.returns);
        match call.result.filter(|_| returns) {
            Some(result) => format!("returned {result}"),
            None => "returned".to_owned(),
        }
    }
}

/// Reads which functions implement which operations.
pub fn implemented(texts: &[String]) -> anyhow::Result<Vec<Implemented>> {
    let read = |text: &String| text.parse().map_err(anyhow::Error::msg);
    let all: Vec<Implemented> = texts.iter().map(read).collect::<Result<_, _>>()?;
    let operations = all.iter().filter(|one| one.operation != NEW).count();
    ensure!(
        operations > 0,
        "say which functions implement which operations: --map Push=stack_push"
    );
    Ok(all)
}

/// Reads a specification.
pub fn specification(source: &spec::Source) -> anyhow::Result<Program> {
    linearize::language::read(source)
        .map_err(|errors| anyhow::Error::msg(errors.render(source, false)))
        .context("the specification cannot be used")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ThreadNumber;

    #[test]
    fn mappings_say_what_each_parameter_is() {
        let read = |text: &str| text.parse::<Implemented>();
        let full = read("Push=stack_push(object, v, _)").expect("a mapping");
        assert_eq!(full.parameters, Some(vec![Part::Object, Part::Argument, Part::Ignored]));
        assert_eq!(read("Pop = take").expect("a mapping").function, "take");
        for wrong in ["Push", "=x", "Push=", "Push=f(object"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_object_has_a_history_of_its_own_which_a_constructor_begins_anew() {
        let form = Form { operation: 0, arguments: 1, returns: true };
        let roles = [
            Role { form: Some(form), parameters: vec![Part::Object, Part::Argument] },
            Role { form: None, parameters: vec![] },
        ];
        let call = |function, arguments: &[i64], result| Call {
            function,
            thread: ThreadNumber(1),
            nth: 1,
            arguments: arguments.to_vec(),
            result: Some(result),
        };
        let calls =
            vec![call(0, &[7, 1], 5), call(0, &[8, 2], 6), call(1, &[], 7), call(0, &[7, 3], 9)];
        let happened =
            [0, 1, 2, 3].iter().flat_map(|n| [Happened::Called(*n), Happened::Returned(*n)]);
        let history = History { calls, happened: happened.collect() };
        let numbers: Vec<Vec<usize>> =
            objects(&history, &roles).iter().map(|object| object.calls.clone()).collect();
        assert_eq!(numbers, [vec![0], vec![1], vec![3]]);
    }
}
