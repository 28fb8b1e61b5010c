//! Lists the first findings of a tree with the default thresholds, without the rest of the tool.
//!
//!     cargo run --release -p whydunit-correlate --example findings -- TREE [COUNT]

use correlate::library::Library;
use correlate::rules::BySize;
use correlate::tree::Silent;
use correlate::{Request, analyse};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().ok_or("usage: findings TREE [COUNT]")?;
    let count = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let request = Request {
        roots: vec![root.into()],
        library: Library::builtin(),
        by_size: BySize::ALL,
        max_file_size: 32 << 20,
        ..Request::default()
    };
    let findings = analyse(&request, &Silent)?.findings();
    println!("{} findings", findings.len());
    for (number, finding) in findings.iter().take(count).enumerate() {
        println!("{:>3}. [{:?}] {}", number + 1, finding.confidence, finding.title);
        for step in &finding.evidence {
            let place = step.place.as_ref().map(ToString::to_string).unwrap_or_default();
            println!("     - {} ({place})", step.text);
        }
    }
    Ok(())
}
