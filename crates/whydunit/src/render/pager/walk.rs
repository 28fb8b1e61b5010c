//! Where a reader is in a slice, what a key does, and what is to be seen.

use super::keys::Key;
use crate::render::style_of;
use analyze::slice::View;
use analyze::slice::view::{Link, Statement};
use report::slice::text;
use report::source;
use report::style::Style;

/// Columns and lines of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Columns.
    pub width: usize,
    /// Lines.
    pub height: usize,
}

/// Lines of source around a statement, at first.
const AROUND: u32 = 3;

/// What the lower part of the screen is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    /// The edges of a statement.
    Edges,
    /// All statements.
    List,
    /// A search is being typed.
    Search(String),
    /// What the keys do.
    Help,
}

/// A walk through a slice.
pub struct Walk<'a> {
    question: &'a str,
    view: &'a View,
    /// The statement; none is the question.
    at: Option<usize>,
    /// Which of its edges is chosen, or which statement of the list.
    chosen: usize,
    /// Where one came from, and which edge was chosen there.
    history: Vec<(Option<usize>, usize)>,
    around: u32,
    mode: Mode,
    sought: String,
    note: String,
    style: Style,
}

impl<'a> Walk<'a> {
    /// Begins at the question.
    pub fn new(question: &'a str, view: &'a View) -> Self {
        Self {
            question,
            view,
            at: None,
            chosen: 0,
            history: Vec::new(),
            around: AROUND,
            mode: Mode::Edges,
            sought: String::new(),
            note: String::new(),
            style: style_of(&std::io::stdout()),
        }
    }

    /// Does what a key asks for; whether to go on.
    pub fn press(&mut self, key: Key) -> bool {
        self.note.clear();
        if key == Key::Interrupt {
            return false;
        }
        match &mut self.mode {
            Mode::Search(text) => match key {
                Key::Letter(letter) => text.push(letter),
                Key::Backspace => drop(text.pop()),
                Key::Enter => {
                    self.sought = std::mem::take(text);
                    self.mode = Mode::Edges;
                    self.search();
                }
                _ => self.mode = Mode::Edges,
            },
            Mode::Help => self.mode = Mode::Edges,
            Mode::Edges | Mode::List => return self.command(key),
        }
        true
    }

    fn command(&mut self, key: Key) -> bool {
        match key {
            Key::Letter('q') => return false,
            Key::Down | Key::Letter('j') => self.choose(1),
            Key::Up | Key::Letter('k') => self.choose(-1),
            Key::PageDown => self.choose(10),
            Key::PageUp => self.choose(-10),
            Key::Enter | Key::Right => self.follow(),
            Key::Letter(digit @ '1'..='9') => {
                self.chosen = digit as usize - '1' as usize;
                self.follow();
            }
            Key::Left | Key::Backspace | Key::Letter('b') => self.back(),
            Key::Letter('n') => self.move_to(Some(self.at.map_or(0, |at| at + 1))),
            Key::Letter('p') => self.move_to(self.at.and_then(|at| at.checked_sub(1))),
            Key::Letter('0') => self.move_to(None),
            Key::Letter('l') => self.list(),
            Key::Letter('+') => self.around = (self.around * 2).min(200),
            Key::Letter('-') => self.around = (self.around / 2).max(1),
            Key::Letter('/') => self.mode = Mode::Search(String::new()),
            Key::Letter('m') => self.search(),
            Key::Letter('h' | '?') => self.mode = Mode::Help,
            Key::Escape => self.mode = Mode::Edges,
            _ => {}
        }
        true
    }

    fn choose(&mut self, by: isize) {
        let count = match self.mode {
            Mode::List => self.view.statements.len(),
            _ => self.edges().len(),
        };
        self.chosen = self.chosen.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// Edges of the statement: what it depends on, then who depends on it.
    fn edges(&self) -> Vec<&'a Link> {
        let links = &self.view.links;
        let on = links.iter().filter(|link| link.user == self.at);
        let by = links.iter().filter(|link| self.at == Some(link.on) && link.user != self.at);
        on.chain(by).collect()
    }

    fn follow(&mut self) {
        let to = match self.mode {
            Mode::List => Some(Some(self.chosen)),
            _ => self
                .edges()
                .get(self.chosen)
                .map(|link| if link.user == self.at { Some(link.on) } else { link.user }),
        };
        match to {
            Some(to) => self.move_to(to),
            None => self.note = "there is no such edge".into(),
        }
    }

    fn move_to(&mut self, to: Option<usize>) {
        if to.is_some_and(|to| to >= self.view.statements.len()) {
            self.note = "this is the last statement".into();
            return;
        }
        self.history.push((self.at, self.chosen));
        (self.at, self.chosen, self.mode) = (to, 0, Mode::Edges);
    }

    fn back(&mut self) {
        self.mode = Mode::Edges;
        match self.history.pop() {
            Some((at, chosen)) => (self.at, self.chosen) = (at, chosen),
            None => self.note = "this is where you began".into(),
        }
    }

    fn list(&mut self) {
        if self.mode == Mode::List {
            (self.mode, self.chosen) = (Mode::Edges, 0);
        } else {
            (self.mode, self.chosen) = (Mode::List, self.at.unwrap_or(0));
        }
    }

    /// Goes to the next statement in which the sought text occurs.
    fn search(&mut self) {
        if self.sought.is_empty() {
            self.note = "search for what? / asks".into();
            return;
        }
        let count = self.view.statements.len();
        let first = self.at.map_or(0, |at| at + 1);
        let found = (first..count).chain(0..first.min(count)).find(|at| self.matches(*at));
        match found {
            Some(at) => self.move_to(Some(at)),
            None => self.note = format!("nothing has '{}'", self.sought),
        }
    }

    fn matches(&self, at: usize) -> bool {
        let statement = &self.view.statements[at];
        let has = |text: &str| text.contains(&self.sought);
        let links = || self.view.links.iter().filter(|link| link.on == at);
        has(&text::place(statement))
            || has(&text::line(statement))
            || statement.place.function.as_deref().is_some_and(has)
            || text::notes(statement).iter().any(|note| has(note))
            || links().any(|link| has(&link.because))
    }

    /// What is to be seen: exactly as many lines as there is room for, none longer.
    pub fn lines(&self, size: Size) -> Vec<String> {
        let mut lines = vec![self.head()];
        lines.extend(self.statement(size));
        let room = size.height.saturating_sub(lines.len() + 1);
        lines.extend(match self.mode {
            Mode::List => self.listed(room),
            Mode::Help => HELP.lines().map(str::to_owned).take(room).collect(),
            _ => self.edge_lines(room),
        });
        lines.truncate(size.height.saturating_sub(1));
        lines.resize(size.height.saturating_sub(1), String::new());
        lines.push(self.foot());
        let marked = |(number, line): (usize, String)| {
            let cut: String = line.chars().take(size.width).collect();
            match number {
                0 => self.style.strong(&cut),
                _ if number + 1 == size.height => self.style.faint(&cut),
                _ if cut.starts_with('>') => self.style.strong(&cut),
                _ => cut,
            }
        };
        lines.into_iter().enumerate().map(marked).collect()
    }

    fn head(&self) -> String {
        let count = self.view.statements.len();
        match self.at {
            Some(at) => format!("{}: statement {} of {count}", self.question, at + 1),
            None => format!("{}: {count} statements", self.question),
        }
    }

    fn foot(&self) -> String {
        match &self.mode {
            Mode::Search(text) => format!("/{text}"),
            _ if !self.note.is_empty() => self.note.clone(),
            _ => {
                "enter follow  b back  n p next, previous  l list  + - source  / search  h help  q"
                    .into()
            }
        }
    }

    /// The statement with its source.
    fn statement(&self, size: Size) -> Vec<String> {
        let Some(statement) = self.at.map(|at| &self.view.statements[at]) else {
            return vec!["what was asked".into(), String::new()];
        };
        let function = statement.place.function.as_deref().unwrap_or_default();
        let mut lines = vec![format!("{} {function}", text::place(statement))];
        let notes = text::notes(statement);
        if !notes.is_empty() {
            lines.push(format!("  {}", notes.join("; ")));
        }
        lines.extend(self.source(statement, size.height / 2));
        lines.push(String::new());
        lines
    }

    fn source(&self, statement: &Statement, room: usize) -> Vec<String> {
        let (Some(file), Some(line)) = (&statement.place.file, statement.place.line) else {
            return vec!["  (no source)".into()];
        };
        let around = self.around.min((room / 2) as u32);
        let lines = source::around(file, line, around, around);
        if lines.is_empty() {
            return vec![format!("  ({} is not at hand)", source::shortened(file))];
        }
        let mark = |number| if number == line { '>' } else { ' ' };
        let shown = lines.into_iter();
        shown.map(|(number, text)| format!("{} {number:>5}  {text}", mark(number))).collect()
    }

    fn edge_lines(&self, room: usize) -> Vec<String> {
        let edges = self.edges();
        let mut lines = Vec::new();
        let mut chosen_line = 0;
        let mut needed_by = false;
        for (number, link) in edges.iter().enumerate() {
            let leads_back = link.user != self.at;
            if number == 0 && !leads_back {
                lines.push("depends on".to_owned());
            }
            if leads_back && !std::mem::replace(&mut needed_by, true) {
                lines.push("needed by".to_owned());
            }
            if number == self.chosen {
                chosen_line = lines.len();
            }
            let mark = if number == self.chosen { '>' } else { ' ' };
            let other = if leads_back { link.user } else { Some(link.on) };
            let line = other.map_or_else(String::new, |at| text::line(&self.view.statements[at]));
            let edge = text::edge(self.view, link);
            lines.push(format!("{mark} {:>2} {edge}   {line}", number + 1));
        }
        if edges.is_empty() {
            lines.push("nothing: the value begins here".into());
        }
        window(lines, chosen_line, room)
    }

    fn listed(&self, room: usize) -> Vec<String> {
        let statements = self.view.statements.iter().enumerate();
        let lines = statements.map(|(number, statement)| {
            let mark = if number == self.chosen { '>' } else { ' ' };
            let (brief, line) = (text::short_place(statement), text::line(statement));
            format!("{mark} {:>4} {brief}  {line}", number + 1)
        });
        window(lines.collect(), self.chosen, room)
    }
}

/// As many lines as there is room for, the chosen one among them.
fn window(lines: Vec<String>, chosen: usize, room: usize) -> Vec<String> {
    let first = (chosen + 1).saturating_sub(room);
    lines.into_iter().skip(first).take(room).collect()
}

const HELP: &str = "\
up, down, j, k     choose an edge
enter, right, 1-9  follow it: to what the statement depends on, or who needs it
b, left            go back to where you came from
n, p, 0            next statement, previous one, the question
l                  all statements
+, -               more or less source
/text, m           search statements, functions, variables; the next match
q                  enough";

#[cfg(test)]
mod tests {
    use super::*;
    use base::Place;

    fn statement(line: u32) -> Statement {
        Statement {
            place: Place { file: Some("/no/a.c".into()), line: Some(line), ..Place::default() },
            through: Vec::new(),
            own: true,
            inputs: Vec::new(),
            executions: 1,
            instance: 1,
            threads: vec![1],
            distance: 0,
            hands_on: false,
            decisive: false,
            cost: 0,
            unwritten: false,
            position: None,
            thread: 1,
            moment: 0,
        }
    }

    fn link(user: Option<usize>, on: usize, because: &str) -> Link {
        let because = because.into();
        Link { user, user_instance: 2, on, on_instance: 3, kind: "value", because, count: 1 }
    }

    fn view() -> View {
        View {
            forward: false,
            statements: vec![statement(30), statement(20), statement(10)],
            links: vec![link(None, 0, "x"), link(Some(0), 1, "y"), link(Some(0), 2, "z")],
            cut: false,
        }
    }

    fn press(walk: &mut Walk<'_>, keys: &str) {
        for letter in keys.chars() {
            let key = if letter == '\n' { Key::Enter } else { Key::Letter(letter) };
            assert!(walk.press(key));
        }
    }

    #[test]
    fn edges_are_followed_and_taken_back() {
        let view = view();
        let mut walk = Walk::new("x", &view);
        press(&mut walk, "\nj\n");
        assert_eq!(walk.at, Some(2), "the second edge of the first statement");
        press(&mut walk, "b");
        assert_eq!((walk.at, walk.chosen), (Some(0), 1), "with the same edge chosen");
        press(&mut walk, "3");
        assert_eq!(walk.at, None, "back along the edge that led here");
        press(&mut walk, "9");
        assert_eq!(walk.note, "there is no such edge");
        press(&mut walk, "bbbbb");
        assert_eq!(walk.note, "this is where you began");
    }

    #[test]
    fn searching_goes_round() {
        let view = view();
        let mut walk = Walk::new("x", &view);
        press(&mut walk, "/a.c:10\n");
        assert_eq!(walk.at, Some(2));
        press(&mut walk, "/y\n");
        assert_eq!(walk.at, Some(1), "a variable, from the beginning again");
        press(&mut walk, "/nowhere\n");
        assert_eq!((walk.at, &*walk.note), (Some(1), "nothing has 'nowhere'"));
    }

    #[test]
    fn the_screen_is_always_full_and_never_wider() {
        let view = view();
        let mut walk = Walk::new("x", &view);
        for keys in ["", "\n", "l", "jj", "h", "x", "/abc", "\n", "+++", "l"] {
            press(&mut walk, keys);
            for (width, height) in [(80, 24), (20, 5), (1, 1), (200, 2)] {
                let lines = walk.lines(Size { width, height });
                assert_eq!(lines.len(), height.max(1), "{keys:?}");
                assert!(lines.iter().all(|line| line.chars().count() <= width));
            }
        }
        let mut walk = Walk::new("x", &view);
        press(&mut walk, "\n");
        let text = walk.lines(Size { width: 80, height: 24 }).join("\n");
        assert!(text.contains(">  1 a.c:30#2 <- a.c:20#3 because of y (value)"), "{text}");
        assert!(!walk.press(Key::Letter('q')) && !walk.press(Key::Interrupt));
    }
}
