//! A page: its fenced blocks, and what comments say about them.
//!
//! - `<!-- needs: examples/a.c examples/b.c -->`: files that the page's examples find in their folder.
//! - `<!-- prog: examples/a.c -->`: commands in running text that name `./prog …` are run with this program, without
//!   arguments; they must answer.
//! - `<!-- counts: exact -->`: counts of events are the same on every machine.
//! - `<!-- example: not compared: REASON -->` before a block: it is run, and every command must end with 0; what it
//!   prints is not compared. `not compared, exit 1:` expects another code of the last command.
//! - `<!-- example: not run: REASON -->` before a block.
//!
//! Every fence says what it is: `console` (commands behind `$ `, and what they print), `synopsis` (the form of a
//! command line), or a language.

/// A page.
pub struct Page<'a> {
    /// Files that it needs.
    pub needs: Vec<&'a str>,
    /// The program that its running text is about.
    pub prog: Option<&'a str>,
    /// Whether counts are compared.
    pub exact_counts: bool,
    /// Its fenced blocks.
    pub blocks: Vec<Block<'a>>,
    /// Code in running text.
    pub inline: Vec<String>,
}

/// A fenced block.
pub struct Block<'a> {
    /// What stands behind its fence.
    pub kind: &'a str,
    /// What is in it.
    pub body: &'a str,
    /// Where in the page that begins.
    pub at: usize,
    /// What becomes of it.
    pub treatment: Treatment<'a>,
}

/// What becomes of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment<'a> {
    /// It is run and must print what the page says.
    Compared,
    /// It is run and must end with this code.
    Run(i32),
    /// It is not run, for this reason.
    NotRun(&'a str),
}

impl<'a> Page<'a> {
    /// Reads a page.
    pub fn read(text: &'a str) -> Self {
        let (mut blocks, mut prose, mut at) = (Vec::new(), String::new(), 0);
        while let Some(fence) = fence(text, at) {
            prose += &text[at..fence];
            let kind_end = fence + text[fence..].find('\n').expect("the end of a line");
            let begin = kind_end + 1;
            let end = begin + closing(&text[begin..]);
            blocks.push(Block {
                kind: text[fence + 3..kind_end].trim(),
                body: &text[begin..end],
                at: begin,
                treatment: treatment(text[..fence].trim_end().lines().last().unwrap_or_default()),
            });
            at = end + 3;
        }
        prose += &text[at..];
        let needs = comment(text, "needs").map(|files| files.split_whitespace().collect());
        Self {
            needs: needs.unwrap_or_default(),
            prog: comment(text, "prog"),
            exact_counts: comment(text, "counts") == Some("exact"),
            blocks,
            inline: inline(&prose),
        }
    }
}

impl Block<'_> {
    /// The commands in it.
    pub fn commands(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
    }
}

/// Where the next block opens.
fn fence(text: &str, from: usize) -> Option<usize> {
    if from == 0 && text.starts_with("```") {
        return Some(0);
    }
    text[from..].find("\n```").map(|at| from + at + 1)
}

fn closing(text: &str) -> usize {
    if text.starts_with("```") { 0 } else { text.find("\n```").expect("the end of a block") + 1 }
}

/// The words of a comment of this name.
fn comment<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<!-- {name}: "))?;
    rest.split_once(" -->").map(|(words, _)| words)
}

fn treatment(line: &str) -> Treatment<'_> {
    let words = comment(line, "example").unwrap_or_default();
    if let Some(reason) = words.strip_prefix("not run: ") {
        return Treatment::NotRun(reason);
    }
    let Some(how) = words.strip_prefix("not compared") else { return Treatment::Compared };
    let (code, reason) = how.split_once(": ").expect("a reason");
    assert!(!reason.is_empty(), "{line} gives no reason");
    Treatment::Run(code.strip_prefix(", exit ").map_or(0, |code| code.parse().expect("a code")))
}

/// Code in running text.
fn inline(prose: &str) -> Vec<String> {
    let parts = prose.split('`').skip(1).step_by(2);
    parts.map(|code| code.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn blocks_and_comments_are_told_apart() {
    let text = "<!-- needs: a.c b.c -->\n`x y`\n```console\n$ ls\na\n```\n\
                <!-- example: not compared, exit 1: times -->\n```console\n$ date\n```\n\
                <!-- example: not run: installs -->\n```console\n$ make install\n```\n```c\nint x;\n```\n";
    let page = Page::read(text);
    assert_eq!(page.needs, ["a.c", "b.c"]);
    assert!(!page.exact_counts);
    assert_eq!(page.inline, ["x y"]);
    let treatments: Vec<Treatment<'_>> = page.blocks.iter().map(|block| block.treatment).collect();
    let (compared, not_run) = (Treatment::Compared, Treatment::NotRun("installs"));
    assert_eq!(treatments, [compared, Treatment::Run(1), not_run, compared]);
    assert_eq!(page.blocks[0].commands(), ["ls"]);
    assert_eq!((page.blocks[3].kind, page.blocks[3].body), ("c", "int x;\n"));
}
