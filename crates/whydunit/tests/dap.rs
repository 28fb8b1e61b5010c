//! `whydunit dap`, with a client of its own: an editor's way through a recording, and what no editor would send.

mod support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Line numbers matter.
const PROGRAM: &str = r#"#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
struct node { int key; struct node *next; };
static struct node *head;
static int total;
static void handler(int signal) { total += signal; }
static int weigh(int key) {
    int weight = key * 3;
    return weight;
}
static void add(int key) {
    struct node *node = malloc(sizeof *node);
    node->key = key;
    node->next = head;
    head = node;
    total += weigh(key);
}
int main(void) {
    signal(SIGUSR1, handler);
    for (int i = 0; i < 6; i++)
        add(i);
    raise(SIGUSR1);
    int values[3] = {4, 5, 6};
    printf("%d %d\n", total, values[1]);
    fflush(stdout);
    struct node *wrong = head->next->next->next->next->next->next;
    return wrong->key;
}
"#;

struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    sent: i64,
    events: Vec<Value>,
}

impl Client {
    fn start() -> Self {
        let mut child = support::tool(&["dap"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the adapter");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("output"));
        Self { child, input, output, sent: 0, events: Vec::new() }
    }

    fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("sent");
    }

    fn receive(&mut self) -> Option<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("a header") == 0 {
                return None;
            }
            match line.trim().strip_prefix("Content-Length:") {
                Some(number) => length = number.trim().parse().expect("a length"),
                None if line.trim().is_empty() => break,
                None => panic!("no header: {line}"),
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("a message");
        Some(serde_json::from_slice(&bytes).expect("JSON"))
    }

    /// Asks, and gives the whole answer.
    fn answer(&mut self, command: &str, arguments: Value) -> Value {
        self.sent += 1;
        let message = json!({
            "seq": self.sent, "type": "request", "command": command, "arguments": arguments,
        });
        let text = message.to_string();
        self.send_raw(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
        loop {
            let message = self.receive().expect("an answer");
            if message["type"] == "response" {
                assert_eq!(message["request_seq"], self.sent, "{message}");
                return message;
            }
            self.events.push(message);
        }
    }

    /// Asks for something that works.
    fn ask(&mut self, command: &str, arguments: Value) -> Value {
        let answer = self.answer(command, arguments);
        assert_eq!(answer["success"], true, "{command}: {answer}");
        answer["body"].clone()
    }

    fn event(&mut self, name: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["event"] == name) {
                return self.events.remove(at)["body"].clone();
            }
            let message = self.receive().expect("an event");
            self.events.push(message);
        }
    }

    /// Moves, and gives why it stopped and at which line.
    fn go(&mut self, command: &str) -> (String, u64) {
        self.ask(command, json!({ "threadId": 1 }));
        let stopped = self.event("stopped");
        let reason = stopped["reason"].as_str().expect("a reason").to_owned();
        (reason, self.top()["line"].as_u64().expect("a line"))
    }

    fn top(&mut self) -> Value {
        self.ask("stackTrace", json!({ "threadId": 1, "levels": 5 }))["stackFrames"][0].clone()
    }

    fn value(&mut self, expression: &str) -> String {
        let frame = self.top()["id"].clone();
        let told = self.ask(
            "evaluate",
            json!({ "expression": expression, "frameId": frame, "context": "hover" }),
        );
        told["result"].as_str().expect("a value").to_owned()
    }

    fn begin(&mut self, launch: Value) -> Value {
        let able = self.ask("initialize", json!({ "adapterID": "whydunit" }));
        self.ask("launch", launch);
        self.event("initialized");
        able
    }

    fn end(mut self) {
        self.ask("disconnect", json!({}));
        drop(self.input.take());
        assert!(self.child.wait().expect("its end").success());
    }
}

fn program(folder: &std::path::Path) -> std::path::PathBuf {
    let source = folder.join("nodes.c");
    std::fs::write(&source, PROGRAM).expect("written");
    support::build_file(&source, "dap-nodes", &["-g", "-O0"])
}

#[test]
fn an_editor_goes_forwards_and_backwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program(folder.path());
    let source = folder.path().join("nodes.c").display().to_string();
    let mut client = Client::start();
    let able = client.begin(json!({ "program": program, "at": "start" }));
    assert_eq!(able["supportsStepBack"], true);
    assert_eq!(client.event("output")["output"], "55 5\n", "what the program wrote");

    let set = client.ask("setBreakpoints", json!({
        "source": { "path": source },
        "breakpoints": [{ "line": 14, "condition": "key == 3" }, { "line": 9, "hitCondition": "5" }, { "line": 99 }],
    }));
    let verified: Vec<bool> = (0..3).map(|n| set["breakpoints"][n]["verified"] == true).collect();
    assert_eq!(verified, [true, true, false], "{set}");
    client.ask("setExceptionBreakpoints", json!({ "filters": ["signals"] }));
    client.ask("configurationDone", json!({}));
    assert_eq!(client.event("stopped")["reason"], "entry");

    assert_eq!(client.go("continue"), ("breakpoint".into(), 14));
    assert_eq!(client.value("key"), "3");
    assert_eq!(client.go("next"), ("step".into(), 15));
    assert_eq!(client.go("next"), ("step".into(), 16));
    assert_eq!(client.go("next"), ("step".into(), 17));
    assert_eq!(client.go("stepIn"), ("step".into(), 9));
    assert_eq!(client.go("stepOut"), ("step".into(), 17));
    assert_eq!(client.go("stepBack").0, "step");
    assert_eq!(client.go("continue"), ("breakpoint".into(), 9));
    assert_eq!(client.value("key"), "4");
    assert_eq!(client.go("reverseContinue"), ("breakpoint".into(), 14));
    assert_eq!(client.go("continue"), ("breakpoint".into(), 9));
    assert_eq!(client.go("continue").0, "exception", "the signal");
    let (reason, line) = client.go("continue");
    assert_eq!((reason.as_str(), line), ("exception", 28), "the crash");

    // What is there.
    let threads = client.ask("threads", json!({}));
    assert_eq!(threads["threads"][0]["id"], 1);
    let top = client.top();
    assert_eq!((&top["name"], &top["source"]["name"]), (&json!("main"), &json!("nodes.c")));
    let scopes = client.ask("scopes", json!({ "frameId": top["id"] }));
    let locals = client.ask(
        "variables",
        json!({ "variablesReference": scopes["scopes"][0]["variablesReference"] }),
    );
    let local = |name: &str| {
        let all = locals["variables"].as_array().expect("variables");
        all.iter()
            .find(|it| it["name"] == name)
            .unwrap_or_else(|| panic!("{name} in {locals}"))
            .clone()
    };
    assert_eq!(local("wrong")["value"], "0x0");
    let values = client
        .ask("variables", json!({ "variablesReference": local("values")["variablesReference"] }));
    let shown: Vec<&str> =
        (0..3).map(|n| values["variables"][n]["value"].as_str().expect("a value")).collect();
    assert_eq!(shown, ["4", "5", "6"]);
    let registers = client.ask(
        "variables",
        json!({ "variablesReference": scopes["scopes"][1]["variablesReference"] }),
    );
    assert_eq!(registers["variables"][16]["name"], "rip");
    let head = client
        .ask("evaluate", json!({ "expression": "head", "frameId": top["id"], "context": "watch" }));
    let inside =
        client.ask("variables", json!({ "variablesReference": head["variablesReference"] }));
    assert_eq!(
        (&inside["variables"][0]["name"], &inside["variables"][0]["value"]),
        (&json!("key"), &json!("5"))
    );
    let memory =
        client.ask("readMemory", json!({ "memoryReference": head["memoryReference"], "count": 4 }));
    assert_eq!(memory["data"], "BQAAAA==", "5");
    let code = client.ask("disassemble", json!({
        "memoryReference": top["instructionPointerReference"], "instructionOffset": -3, "instructionCount": 6,
    }));
    let lines = code["instructions"].as_array().expect("instructions");
    assert_eq!(
        (lines.len(), &lines[3]["address"]),
        (6, &top["instructionPointerReference"]),
        "{code}"
    );

    // Where a value came from, twice; and data breakpoints backwards.
    let info = client.ask("dataBreakpointInfo", json!({ "name": "total", "frameId": top["id"] }));
    client.ask(
        "setDataBreakpoints",
        json!({ "breakpoints": [{ "dataId": info["dataId"], "accessType": "write" }] }),
    );
    client.ask("setExceptionBreakpoints", json!({ "filters": [] }));
    assert_eq!(client.go("reverseContinue"), ("data breakpoint".into(), 7));
    client.ask("setDataBreakpoints", json!({ "breakpoints": [] }));
    let told =
        client.ask("evaluate", json!({ "expression": "origin head->key", "context": "repl" }));
    assert!(told["result"].as_str().is_some_and(|text| text.contains("nodes.c:14")), "{told}");
    assert_eq!(client.event("stopped")["reason"], "goto");
    assert_eq!(client.value("key"), "5");
    client.end();
}

#[test]
fn breakpoints_at_functions_and_instructions_and_what_if_in_the_console() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program(folder.path());
    let recording = folder.path().join("nodes.whydunit").display().to_string();
    let recorded = support::tool(&["record", "-q", "-o", &recording, "--"]).arg(&program).output();
    assert!(recorded.expect("recorded").stdout.starts_with(b"55"));
    let mut client = Client::start();
    client.begin(json!({ "recording": recording, "at": "main#1" }));
    client.ask(
        "setFunctionBreakpoints",
        json!({ "breakpoints": [{ "name": "weigh", "condition": "key == 2" }] }),
    );
    client.ask("configurationDone", json!({}));
    client.event("stopped");
    assert_eq!(client.go("continue"), ("function breakpoint".into(), 9));
    let pc = client.top()["instructionPointerReference"].clone();
    client.ask("setFunctionBreakpoints", json!({ "breakpoints": [] }));
    client.ask(
        "setInstructionBreakpoints",
        json!({ "breakpoints": [{ "instructionReference": pc }] }),
    );
    assert_eq!(client.go("continue"), ("instruction breakpoint".into(), 9));
    assert_eq!(client.value("key"), "3");
    client.ask("setInstructionBreakpoints", json!({ "breakpoints": [] }));
    let said = client.ask("evaluate", json!({ "expression": "suppress raise", "context": "repl" }));
    assert!(said["result"].as_str().is_some_and(|text| text.contains("left out")), "{said}");
    assert_eq!(client.go("continue").0, "exception", "it crashes all the same");
    assert_eq!(client.value("total"), "45", "and not 55: no signal was sent");
    client.ask("reverseContinue", json!({ "threadId": 1 }));
    client.event("stopped");
    assert_eq!(client.value("total"), "45", "back where the recording was left, before the signal");
    client.end();
}

#[test]
fn what_is_wrong_is_answered_and_the_session_goes_on() {
    let mut client = Client::start();
    for (command, given) in [
        ("threads", json!({})),
        ("launch", json!({})),
        ("launch", json!({ "recording": "/nowhere" })),
        ("launch", json!({ "program": 7 })),
        ("attach", Value::Null),
    ] {
        let answer = client.answer(command, given);
        assert_eq!(answer["success"], false, "{command}");
        assert!(answer["message"].as_str().is_some_and(|text| !text.is_empty()));
    }
    let folder = tempfile::tempdir().expect("a folder");
    client.begin(json!({ "program": program(folder.path()) }));
    client.ask("configurationDone", json!({}));
    client.event("stopped");
    client.send_raw(b"Content-Length: 5\r\n\r\n{\"a\":");
    client.send_raw(b"Content-Length: 2\r\n\r\n[]");
    // Every command with arguments that make no sense, drawn by a fixed generator.
    let commands = [
        "setBreakpoints",
        "setFunctionBreakpoints",
        "setInstructionBreakpoints",
        "dataBreakpointInfo",
        "setDataBreakpoints",
        "setExceptionBreakpoints",
        "threads",
        "stackTrace",
        "scopes",
        "variables",
        "setExpression",
        "disassemble",
        "readMemory",
        "evaluate",
        "nonsense",
        "whydunit/origin",
    ];
    let names = [
        "source",
        "breakpoints",
        "name",
        "variablesReference",
        "frameId",
        "filters",
        "threadId",
        "expression",
        "value",
        "memoryReference",
        "offset",
        "instructionOffset",
        "instructionCount",
        "count",
        "context",
        "start",
    ];
    let mut state = 18u64;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..400 {
        let mut given = json!({});
        for _ in 0..draw(5) {
            given[names[draw(names.len())]] = match draw(9) {
                0 => json!(-1),
                1 => json!(u64::MAX),
                2 => json!("0xffffffffffffffff"),
                3 => json!("*((("),
                4 => json!([{ "line": 3, "name": "add", "condition": "((", "dataId": "0x1,0" }]),
                5 => json!({ "path": "nodes.c", "name": 4 }),
                6 => json!(["findings", 7]),
                7 => json!("total"),
                _ => Value::Null,
            };
        }
        let command = commands[draw(commands.len())];
        let answer = client.answer(command, given.clone());
        assert!(answer["success"].is_boolean(), "{command} {given}");
    }
    assert_eq!(client.value("total"), "55");
    client.end();
}

#[test]
fn an_editor_that_disappears_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start();
    client.begin(json!({ "program": program(folder.path()) }));
    drop(client.input.take());
    assert!(client.child.wait().expect("its end").success());
}
