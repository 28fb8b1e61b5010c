// The program exits by itself. build: rustc -g; class: exit-code
use std::process;
fn allowed(user: &str) -> bool {
    user.len() % 2 == 1 // ROOT
}
fn enter(user: &str) {
    if !allowed(user) {
        eprintln!("{user} may not enter");
        process::exit(5);
    }
    println!("welcome {user}");
}
fn main() {
    enter("bob");
    enter("anna");
}
