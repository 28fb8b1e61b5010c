//! The model of the process, held against a program that says of itself what is to be found out:
//! where the return addresses of its active calls stand, and which blocks are live.

mod support;

use analyze::model::process::Process;
use base::allocator::Allocators;
use events::{Consumer, Decoder, Event};
use std::fs::File;
use std::io::BufReader;

/// What the program says.
#[derive(Default)]
struct Said {
    /// `mark`, `malloc`, `free`, `realloc`.
    functions: Vec<u64>,
    /// Of each call of `mark`, where return addresses stand, innermost first.
    marks: Vec<Vec<u64>>,
    /// Live blocks, and one that was freed: address and size.
    live: Vec<[u64; 2]>,
    freed: Vec<[u64; 2]>,
}

impl Said {
    fn parse(text: &str) -> Self {
        let mut said = Self::default();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').expect("a word and numbers");
            let numbers = rest.split(' ').map(|number| number.trim_start_matches("0x"));
            let hex = |number: &str| u64::from_str_radix(number, 16).expect("a number");
            let block = || {
                let (address, size) = rest.split_once(' ').expect("two numbers");
                [hex(address), size.parse().expect("a number")]
            };
            match word {
                "functions" => said.functions = numbers.map(hex).collect(),
                "mark" => said.marks.push(numbers.map(hex).collect()),
                "block" => said.live.push(block()),
                "gone" => said.freed.push(block()),
                _ => panic!("{line}"),
            }
        }
        said
    }
}

/// Drives a model with all events, and looks at it whenever `mark` is entered.
struct Watch {
    decoder: Decoder,
    process: Process,
    mark: u64,
    marks: Vec<Vec<u64>>,
    threads: Vec<u32>,
}

impl Consumer for Watch {
    fn records(&mut self, bytes: &[u8]) {
        let Self { decoder, process, mark, marks, threads } = self;
        let done = decoder.events(bytes, |event| {
            process.event(&event);
            if matches!(event, Event::Enter { function, .. } if function == *mark) {
                marks.push(process.threads.now().calls.iter().map(|frame| frame.slot).collect());
                threads.push(process.threads.running().number);
            }
        });
        done.expect("well formed");
    }
}

#[test]
fn a_program_has_the_calls_and_blocks_that_it_says_it_has() {
    let source = support::root().join("tests/programs/model/stacks.c");
    let flags = ["-O0", "-fno-omit-frame-pointer", "-pthread"];
    let program = support::build_file(&source, "model-stacks", &flags);
    let events = program.with_extension(format!("events-{}", std::process::id()));
    let mut arguments = vec!["run", "--rules", "none", "--observe", "memory", "--save-events"];
    arguments.push(events.to_str().expect("a plain path"));
    for name in ["mark", "malloc", "free", "realloc"] {
        arguments.extend(["--function", name]);
    }
    arguments.extend(["--", program.to_str().expect("a plain path")]);
    let output = support::run(&arguments);
    assert!(output.status.success(), "{}", support::errors(&output));
    let said = Said::parse(&support::text(&output));
    let [mark, malloc, free, realloc] = said.functions[..] else { panic!("four functions") };

    let mut process = Process::new(Allocators::default());
    for (address, name) in [(malloc, "malloc"), (free, "free"), (realloc, "realloc")] {
        process.add_function(address, name);
    }
    let (decoder, marks, threads) = Default::default();
    let mut watch = Watch { decoder, process, mark, marks, threads };
    let file = BufReader::new(File::open(&events).expect("it was saved"));
    events::file::feed(file, &mut watch).expect("a whole stream");
    std::fs::remove_file(&events).expect("it is there");

    assert_eq!(watch.marks.len(), said.marks.len());
    for (number, (found, said)) in watch.marks.iter().zip(&said.marks).enumerate() {
        // The program says nothing of what called `main`.
        assert_eq!(found.get(..said.len()), Some(&said[..]), "mark {number}");
    }
    let own = |number: &&u32| **number == 2;
    assert_eq!(watch.threads.iter().filter(own).count(), 1, "{:?}", watch.threads);
    let process = &watch.process;
    let ended: Vec<bool> = process.threads.all().skip(1).map(|it| it.ended.is_some()).collect();
    assert_eq!(ended, [false, true], "the second thread has ended");

    let block =
        |address| process.blocks.beginning_at(address).and_then(|id| process.blocks.get(id));
    for [address, size] in said.live {
        let block = block(address).expect("it is there");
        assert!(block.is_live() && block.facts.size == size, "{block:?}");
        assert!(!process.stack(block.stack).is_empty());
    }
    for [address, size] in said.freed {
        let block = block(address).expect("it is remembered");
        assert!(!block.is_live() && block.facts.size == size, "{block:?}");
    }
}
