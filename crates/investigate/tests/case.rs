//! A case is asked for a scene, a diagnosis, a slice and a check, without any front end.

mod support;

use analyze::slice::Follow;
use base::Moment;
use engine::config::Schedule;
use investigate::check::{Choice, recorded};
use investigate::diagnosis::Wanted;
use investigate::scene::Seen;
use investigate::slicing::{Query, windows};
use investigate::{Diagnosis, Notices, moments};
use support::build;

const FREED: &str = r#"
#include <stdlib.h>
struct item { int *count; };
static int *shared;
static void drop(struct item *item) { free(item->count); }
int main(void) {
    struct item item = { malloc(sizeof(int)) };
    *item.count = 7;
    shared = item.count;
    drop(&item);
    int sum = *shared;
    int *nothing = 0;
    return *nothing + sum;
}
"#;

#[test]
fn a_case_answers_with_data() {
    let built = build("freed", FREED, &["-O0"]);
    let case = built.case(Schedule::Fair);
    let process = case.failed_process();

    let mut line = case.timeline(process).expect("a replay");
    let moment: Moment = "crash".parse().expect("a moment");
    let there = moments::seek(&case, process, &mut line, &moment).expect("reached");
    let seen = Seen::of(&case, process, &there).expect("looked at");
    assert!(seen.place.contains("freed.c:13"), "{}", seen.place);
    assert_eq!(seen.end.as_deref(), Some("SIGSEGV ends the program"));

    let wanted = Wanted::new(windows::MEMORY, &|_| None);
    let diagnosis = Diagnosis::of(&case, process, wanted).expect("explained");
    assert!(diagnosis.has_failed() && diagnosis.ended.contains("SIGSEGV"), "{}", diagnosis.ended);
    let when = diagnosis.crash().and_then(|crash| crash.finding.when).expect("a position");
    assert_eq!(when, seen.when, "the crash is where the scene is");
    let chain = &diagnosis.explanation.view.statements;
    assert!(chain.iter().take(2).any(|one| one.place.line == Some(12)), "{chain:?}");
    assert!(chain.iter().all(|one| one.position.is_some()), "every statement has its position");

    let query = Query {
        at: Some("freed.c:12".parse().expect("a moment")),
        values: vec!["sum".into()],
        ..Query::new(Follow::Thin)
    };
    let (execution, _, answer) =
        query.ask_case(&case, process, windows::MEMORY, false).expect("answered");
    let view = execution.view(&answer, Default::default());
    let lines: Vec<_> = view.statements.iter().filter_map(|one| one.place.line).collect();
    // What is read there, `free` has written.
    assert!(lines.contains(&5) && lines.contains(&11), "{lines:?}");

    let chosen = Choice { rules: Some(vec!["memory".into()]), ..Choice::default() };
    let chosen = chosen.read().expect("shipped rules");
    let found = recorded::check(case.session(), process, &chosen, &Notices::none());
    let findings = found.expect("checked").findings();
    let kinds: Vec<&str> = findings.iter().map(|finding| finding.kind.as_str()).collect();
    assert!(kinds.contains(&"dangling-pointer"), "{kinds:?}");
}
