//! What `whydunit slice` prints: edges that name both ends, JSON and DOT with the same statements and
//! links, all executions with `--instructions`.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::{errors, root, run, text};

fn program(name: &str) -> String {
    let source = root().join("examples/bugs").join(format!("{name}.c"));
    let built = support::build_file(&source, &format!("output-{name}"), &["-g", "-O0"]);
    built.to_str().expect("a plain name").to_owned()
}

fn slice(arguments: &[&str], program: &str) -> String {
    let output = run(&[&["slice"], arguments, &["--", program]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    text(&output)
}

fn json(arguments: &[&str], program: &str) -> Value {
    let answer: Value = serde_json::from_str(&slice(arguments, program)).expect("JSON");
    answer["result"].clone()
}

/// A token of the DOT language: a word or a sign, or a string without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Plain(String),
    Quoted(String),
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                let mut string = String::new();
                loop {
                    match letters.next().expect("strings end") {
                        '"' => break,
                        '\\' => string.push(match letters.next().expect("escapes end") {
                            'n' => '\n',
                            other => other,
                        }),
                        other => string.push(other),
                    }
                }
                tokens.push(Token::Quoted(string));
            }
            '-' => {
                assert_eq!(letters.next(), Some('>'), "an arrow");
                tokens.push(Token::Plain("->".into()));
            }
            '{' | '}' | '[' | ']' | '=' | ';' | ',' => tokens.push(Token::Plain(letter.into())),
            letter if letter.is_whitespace() => {}
            letter => {
                let mut word = String::from(letter);
                while let Some(next) =
                    letters.next_if(|next| next.is_alphanumeric() || *next == '_')
                {
                    word.push(next);
                }
                tokens.push(Token::Plain(word));
            }
        }
    }
    tokens
}

type Attributes = BTreeMap<String, String>;

/// Nodes by name, and edges, each with its attributes.
type Graph = (BTreeMap<String, Attributes>, Vec<(String, String, Attributes)>);

/// Nodes by name, and edges: what `dot` would make of it, or it is no graph.
fn graph(text: &str) -> Graph {
    let tokens = tokens(text);
    let plain = |at: usize| match tokens.get(at) {
        Some(Token::Plain(word)) => word.as_str(),
        other => panic!("{other:?} is no word"),
    };
    assert_eq!([plain(0), plain(1), plain(2)], ["digraph", "slice", "{"]);
    let (mut nodes, mut edges) = (BTreeMap::new(), Vec::new());
    let mut at = 3;
    while plain(at) != "}" {
        let name = plain(at).to_owned();
        let mut to = None;
        at += 1;
        if plain(at) == "=" {
            at += 3;
            continue;
        }
        if plain(at) == "->" {
            to = Some(plain(at + 1).to_owned());
            at += 2;
        }
        assert_eq!(plain(at), "[");
        let mut attributes = Attributes::new();
        loop {
            let key = plain(at + 1).to_owned();
            assert_eq!(plain(at + 2), "=");
            let value = match &tokens[at + 3] {
                Token::Plain(value) | Token::Quoted(value) => value.clone(),
            };
            attributes.insert(key, value);
            at += 4;
            if plain(at) == "]" {
                break;
            }
            assert_eq!(plain(at), ",");
        }
        assert_eq!(plain(at + 1), ";");
        at += 2;
        match to {
            Some(to) => edges.push((name, to, attributes)),
            None => drop(nodes.insert(name, attributes)),
        }
    }
    assert_eq!(at + 1, tokens.len(), "nothing behind the graph");
    (nodes, edges)
}

#[test]
fn a_graph_has_the_statements_and_links_of_the_data() {
    let program = program("null_from_error");
    for kind in ["thin", "full"] {
        let report = json(&["--kind", kind, "--json"], &program);
        let (nodes, edges) = graph(&slice(&["--kind", kind, "--dot"], &program));
        let statements = report["statements"].as_array().expect("statements");
        let links = report["links"].as_array().expect("links");
        // And the question, and what holds for all nodes.
        assert_eq!(nodes.len(), statements.len() + 2);
        assert_eq!(edges.len(), links.len());
        for ((from, to, attributes), link) in edges.iter().zip(links) {
            let user = link["user"].as_u64().map_or("question".into(), |user| format!("s{user}"));
            assert_eq!((from, to), (&user, &format!("s{}", link["on"])));
            assert_eq!(attributes["label"], link["because"].as_str().expect("a reason"));
            assert_eq!(attributes["class"], link["kind"].as_str().expect("a kind"));
            assert_eq!(attributes["headlabel"], format!("#{}", link["on_instance"]));
            assert!(nodes.contains_key(from) && nodes.contains_key(to));
        }
    }
}

#[test]
fn edges_name_both_ends() {
    let program = program("stale_value");
    let at = ["--kind", "thin", "--at", "stale_value.c:62#2", "--value", "value"];
    let told = slice(&at, &program);
    let expected = [
        "the question <- stale_value.c:61#2 because of value (value)",
        "stale_value.c:53#2 <- stale_value.c:50#1 because of main::stock.cached_value (value)",
    ];
    for line in expected {
        assert!(told.contains(line), "{line} is missing in\n{told}");
    }
}

#[test]
fn all_executions_and_edges_are_there_as_data() {
    let program = program("stale_value");
    let report = json(&["--instructions", "--json"], &program);
    let executions = report["executions"].as_array().expect("executions");
    let edges = report["edges"].as_array().expect("edges");
    assert!(executions[0].is_null(), "the question");
    assert_eq!(report["cut"], false);
    for edge in edges {
        let end = |name: &str| edge[name].as_u64().expect("a number") as usize;
        assert!(end("user") < executions.len() && end("on") < executions.len());
        assert!(["value", "address", "control"].contains(&edge["kind"].as_str().expect("a kind")));
    }
    let counted = json(&["--json"], &program)["executions"].as_u64().expect("a number");
    let calls = executions.iter().filter(|executed| executed["system_call"].is_string()).count();
    let listed = executions.iter().filter(|executed| !executed.is_null()).count();
    assert!((listed - calls..=listed).contains(&(counted as usize)), "{counted} {listed} {calls}");
}
