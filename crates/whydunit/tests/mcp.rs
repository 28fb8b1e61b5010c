//! `whydunit mcp`, with the client of the SDK.

mod support;

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use std::process::Stdio;

const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
static int *limit;
static int half(int n) {
    return n / 2;
}
int main(void) {
    int count = 6;
    for (int i = 0; i < 3; i++)
        count = half(count);
    if (count > 0)
        limit = &count;
    printf("%d\n", count);
    return *limit;
}
"#;

type Agent = RunningService<RoleClient, ()>;

async fn agent(options: &[&str]) -> (Agent, tokio::process::Child) {
    let mut command = tokio::process::Command::from(support::tool(&["mcp"]));
    let mut child = command
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the server");
    let streams = (child.stdout.take().expect("output"), child.stdin.take().expect("input"));
    (().serve(streams).await.expect("a session"), child)
}

async fn call(agent: &Agent, name: &'static str, given: Value) -> (bool, String) {
    let given = given.as_object().cloned().unwrap_or_default();
    let asked = CallToolRequestParams::new(name).with_arguments(given);
    let result: CallToolResult = agent.call_tool(asked).await.expect("an answer");
    let text = result.content.iter().filter_map(|it| it.as_text()).map(|it| it.text.clone());
    (result.is_error != Some(true), text.collect())
}

async fn names(agent: &Agent) -> Vec<String> {
    let tools = agent.list_all_tools().await.expect("tools");
    assert!(tools.iter().all(|tool| tool.description.as_ref().is_some_and(|text| text.len() > 40)));
    tools.into_iter().map(|tool| tool.name.into_owned()).collect()
}

#[test]
fn an_agent_finds_out_why() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("limit.c");
        std::fs::write(&source, PROGRAM).expect("written");
        let program = support::build_file(&source, "mcp-limit", &["-g", "-O0"]);
        let file = folder.path().join("limit.whydunit").display().to_string();

        // Only asking, unless it is allowed.
        let (reader, _child) = agent(&[]).await;
        assert_eq!(names(&reader).await, ["explain", "state", "origin", "whatif", "findings"]);
        let asked = json!({ "program": program, "recording": file });
        let (fine, text) = call(&reader, "record", asked.clone()).await;
        assert!(!fine && text.contains("--allow-run"), "{text}");
        let (fine, text) = call(&reader, "explain", json!({ "recording": file })).await;
        assert!(!fine && text.contains("there is no file"), "{text}");

        let (agent, _child) = agent(&["--allow-run"]).await;
        assert!(names(&agent).await.contains(&"record".to_owned()));
        let (fine, text) = call(&agent, "record", asked.clone()).await;
        assert!(fine && text.contains("recorded to"), "{text}");
        let (fine, text) = call(&agent, "record", asked).await;
        assert!(!fine && text.contains("not overwritten"), "{text}");

        let (fine, text) = call(&agent, "explain", json!({ "recording": file })).await;
        assert!(fine && text.contains("limit.c:14"), "{text}");
        let state = json!({ "recording": file, "at": "limit.c:11#1", "expressions": ["count * 2", "limit", "nobody"] });
        let (fine, text) = call(&agent, "state", state).await;
        assert!(fine, "{text}");
        support::assert_in_order(&text, &["main at", "count = 0", "count * 2 = 0", "limit = 0x0", "no variable 'nobody'"]);
        let origin = json!({ "recording": file, "at": "crash", "expression": "count", "steps": 2 });
        let (fine, text) = call(&agent, "origin", origin).await;
        assert!(fine && text.contains("limit.c:10"), "{text}");
        let (fine, text) = call(&agent, "whatif", json!({ "recording": file, "switch": "limit.c:11#1" })).await;
        assert!(fine && text.contains("it exits with 0"), "{text}");
        let (fine, text) = call(&agent, "whatif", json!({ "recording": file })).await;
        assert!(!fine && text.contains("say one of"), "{text}");
        let (fine, text) = call(&agent, "findings", json!({ "recording": file })).await;
        assert!(fine && text.contains("findings"), "{text}");
        let (fine, text) = call(&agent, "state", json!({ "recording": file, "at": "((" })).await;
        assert!(!fine && !text.is_empty());
        for task in [agent.cancel().await, reader.cancel().await] {
            task.expect("its end");
        }
    });
}
