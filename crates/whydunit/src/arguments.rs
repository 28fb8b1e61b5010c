//! Options behind a recording: `whydunit why FILE --all` means what `whydunit why --all FILE` does.
//!
//! Everything behind a program is its own arguments, so the parser takes nothing for an option there. A recording has no
//! arguments: it goes to the end before the parser looks.

use clap::{Arg, Command};
use recording::format::MAGIC;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

/// The arguments with the recordings, if these are what is given, behind the options.
pub fn reordered(
    command: &Command,
    arguments: Vec<OsString>,
    is_recording: impl Fn(&OsString) -> bool,
) -> Vec<OsString> {
    let name = arguments.get(1).and_then(|name| name.to_str());
    let Some(command) = name.and_then(|name| command.find_subcommand(name)) else {
        return arguments;
    };
    if arguments.iter().any(|argument| argument == "--") {
        return arguments;
    }
    let (mut options, mut files) = (arguments[..2].to_vec(), Vec::new());
    let mut rest = arguments[2..].iter();
    while let Some(argument) = rest.next() {
        match argument.to_str().filter(|text| text.len() > 1 && text.starts_with('-')) {
            Some(option) => {
                options.push(argument.clone());
                if takes_value(command, option) {
                    options.extend(rest.next().cloned());
                }
            }
            None if is_recording(argument) => files.push(argument.clone()),
            // A program: all that follows is its own.
            None => return arguments,
        }
    }
    options.append(&mut files);
    options
}

/// Whether an option is followed by its value as an argument of its own.
fn takes_value(command: &Command, option: &str) -> bool {
    let is_it = |argument: &&Arg| match option.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        None => argument.get_short() == option.chars().nth(1) && option.chars().count() == 2,
    };
    let known = command.get_arguments().find(is_it);
    known.is_some_and(|argument| argument.get_action().takes_values())
}

/// Whether an argument names a file that begins as a recording does.
pub fn is_recording(argument: &OsString) -> bool {
    let mut start = [0; MAGIC.len()];
    File::open(argument).is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_may_stand_behind_a_recording_and_never_behind_a_program() {
        let flag = |name| Arg::new(name).long(name).action(clap::ArgAction::SetTrue);
        let why =
            Command::new("why").arg(flag("all")).arg(Arg::new("output").short('o').long("output"));
        let command = Command::new("whydunit").subcommand(why);
        let is_recording = |argument: &OsString| argument == "run.wd";
        let check = |given: &str, expected: &str| {
            let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(reordered(&command, words(given), is_recording), words(expected), "{given}");
        };
        check("whydunit why run.wd --all", "whydunit why --all run.wd");
        check("whydunit why run.wd -o out --all", "whydunit why -o out --all run.wd");
        check("whydunit why -o run.wd run.wd --all", "whydunit why -o run.wd --all run.wd");
        check(
            "whydunit why --output=run.wd prog run.wd --all",
            "whydunit why --output=run.wd prog run.wd --all",
        );
        check("whydunit why -- run.wd --all", "whydunit why -- run.wd --all");
        check("whydunit why run.wd --all run.wd -o x", "whydunit why --all -o x run.wd run.wd");
        check("whydunit why prog --all", "whydunit why prog --all");
        check("whydunit other run.wd --all", "whydunit other run.wd --all");
        check("whydunit", "whydunit");
    }
}
