//! What the keys do: the state of the live screen, apart from the terminal.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use weir_model::survey::Survey;
use weir_report::Style;
use weir_report::top::{Foot, Selection, View};

/// Rows that page up and page down go.
const PAGE: usize = 10;

/// What is to be done besides drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Stay,
    /// Draw everything anew.
    Redraw,
    /// End.
    Quit,
    /// Stop, as the shell's Ctrl-Z asks.
    Suspend,
    /// Run weir with these words, then wait for a key.
    Run(Vec<String>),
}

/// What a key means next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    List,
    /// A filter is typed; it was this one before.
    Typing(String),
    /// Flush this process?
    Flush(u32, String),
    Help,
}

/// The live screen between two keys.
#[derive(Debug)]
pub struct App {
    pub survey: Survey,
    pub selection: Selection,
    pub paused: bool,
    selected: Option<u32>,
    mode: Mode,
    message: String,
}

impl App {
    /// With nothing seen yet.
    pub fn new(selection: Selection) -> App {
        App {
            survey: Survey::default(),
            selection,
            paused: false,
            selected: None,
            mode: Mode::List,
            message: String::new(),
        }
    }

    /// A new look. The chosen process stays the same while it is there.
    pub fn take(&mut self, survey: Survey) {
        self.survey = survey;
        self.keep_selected();
    }

    /// What is to be drawn.
    pub fn view(&self, interval_s: f64, style: Style) -> View<'_> {
        let foot = match &self.mode {
            Mode::Typing(_) => Foot::Typing(&self.selection.filter),
            Mode::Flush(_, question) => Foot::Question(question),
            _ if !self.message.is_empty() => Foot::Message(&self.message),
            _ => Foot::Keys,
        };
        View {
            survey: &self.survey,
            selection: &self.selection,
            selected: self.selected,
            foot,
            paused: self.paused,
            help: self.mode == Mode::Help,
            interval_s,
            style,
        }
    }

    /// What a key does.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        self.message.clear();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (control, key.code) {
            (true, KeyCode::Char('c')) => return Action::Quit,
            (true, KeyCode::Char('l')) => return Action::Redraw,
            (true, KeyCode::Char('z')) => return Action::Suspend,
            (true, _) => return Action::Stay,
            _ => {}
        }
        match std::mem::take(&mut self.mode) {
            Mode::List => self.in_list(key.code),
            Mode::Typing(before) => self.in_filter(key.code, before),
            Mode::Flush(pid, _) if matches!(key.code, KeyCode::Char('y' | 'Y')) => run("flush", pid, &[]),
            Mode::Flush(..) => {
                self.message = "nothing was flushed".into();
                Action::Stay
            }
            Mode::Help => Action::Stay,
        }
    }

    fn in_list(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.mode = Mode::Typing(self.selection.filter.clone()),
            KeyCode::Char('s' | '>') => self.selection.sort = self.selection.sort.next(1),
            KeyCode::Char('<') => self.selection.sort = self.selection.sort.previous(),
            KeyCode::Char('p') | KeyCode::Enter => return self.with_selected(|_, pid| run("peek", pid, &[])),
            KeyCode::Char('t') => return self.with_selected(|_, pid| run("trace", pid, &["-t", "5s"])),
            KeyCode::Char('f') => {
                return self.with_selected(|app, pid| {
                    app.mode = Mode::Flush(pid, app.question(pid));
                    Action::Stay
                });
            }
            code => self.go(code),
        }
        Action::Stay
    }

    /// Chooses another process.
    fn go(&mut self, code: KeyCode) {
        let found: Vec<u32> = self.selection.of(&self.survey).iter().map(|one| one.pid).collect();
        let at = found.iter().position(|pid| self.selected == Some(*pid)).unwrap_or(0);
        let last = found.len().saturating_sub(1);
        let to = match code {
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::PageDown => at + PAGE,
            KeyCode::PageUp => at.saturating_sub(PAGE),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => at,
        };
        self.selected = found.get(to.min(last)).copied();
    }

    fn in_filter(&mut self, code: KeyCode, before: String) -> Action {
        match code {
            KeyCode::Esc => self.selection.filter = before,
            KeyCode::Enter => {}
            code => {
                match code {
                    KeyCode::Backspace => drop(self.selection.filter.pop()),
                    KeyCode::Char(letter) => self.selection.filter.push(letter),
                    _ => {}
                }
                self.mode = Mode::Typing(before);
            }
        }
        self.keep_selected();
        Action::Stay
    }

    fn keep_selected(&mut self) {
        let found = self.selection.of(&self.survey);
        if !found.iter().any(|one| self.selected == Some(one.pid)) {
            self.selected = found.first().map(|one| one.pid);
        }
    }

    fn with_selected(&mut self, act: impl Fn(&mut App, u32) -> Action) -> Action {
        match self.selected {
            Some(pid) => act(self, pid),
            None => {
                self.message = "there is no process to choose".into();
                Action::Stay
            }
        }
    }

    fn question(&self, pid: u32) -> String {
        let one = self.survey.processes.iter().find(|one| one.pid == pid);
        let comm = one.map_or("process", |one| &one.comm);
        format!("Write out now what waits in {comm} {pid}?")
    }
}

fn run(verb: &str, pid: u32, more: &[&str]) -> Action {
    let pid = pid.to_string();
    let words = match verb {
        "trace" => vec!["trace", "-p", &pid],
        verb => vec![verb, &pid],
    };
    Action::Run(words.iter().chain(more).map(|word| word.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::survey::Activity;
    use weir_report::top::Sort;

    fn app() -> App {
        let selection = Selection { sort: Sort::Pid, ..Selection::default() };
        let mut app = App::new(selection);
        app.take(survey(&[(10, "cat"), (20, "sed"), (30, "awk")]));
        app
    }

    fn survey(processes: &[(u32, &str)]) -> Survey {
        let one = |&(pid, comm): &(u32, &str)| Activity {
            pid,
            comm: comm.into(),
            command: comm.into(),
            ..Activity::default()
        };
        Survey { elapsed_s: 1.0, processes: processes.iter().map(one).collect(), ..Survey::default() }
    }

    fn press(app: &mut App, keys: &str) -> Action {
        let mut action = Action::Stay;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                key => KeyCode::Char(key),
            };
            action = app.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        action
    }

    fn words(action: Action) -> String {
        match action {
            Action::Run(words) => words.join(" "),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_chosen_process_is_acted_on() {
        let mut app = app();
        assert_eq!(words(press(&mut app, "p")), "peek 10");
        assert_eq!(words(press(&mut app, "jp")), "peek 20");
        assert_eq!(words(press(&mut app, "jjjt")), "trace -p 30 -t 5s");
        assert_eq!(words(press(&mut app, "kp")), "peek 20");
        assert_eq!(words(press(&mut app, "G\n")), "peek 30");
        app.take(survey(&[(5, "new"), (30, "awk")]));
        assert_eq!(words(press(&mut app, "p")), "peek 30", "it stays the same");
        app.take(survey(&[(5, "new")]));
        assert_eq!(words(press(&mut app, "p")), "peek 5", "the first when it has ended");
        app.take(Survey::default());
        assert_eq!(press(&mut app, "p"), Action::Stay);
        assert_eq!(app.view(1.0, Style::default()).foot, Foot::Message("there is no process to choose"));
    }

    #[test]
    fn nothing_is_flushed_without_a_yes() {
        let mut app = app();
        assert_eq!(press(&mut app, "f"), Action::Stay);
        assert_eq!(
            app.view(1.0, Style::default()).foot,
            Foot::Question("Write out now what waits in cat 10?")
        );
        assert_eq!(press(&mut app, "\n"), Action::Stay);
        assert_eq!(press(&mut app, "y"), Action::Stay, "the question was answered");
        assert_eq!(words(press(&mut app, "fy")), "flush 10");
    }

    #[test]
    fn a_filter_is_typed_kept_and_dropped() {
        let mut app = app();
        press(&mut app, "/seq\u{8}");
        assert_eq!(app.view(1.0, Style::default()).foot, Foot::Typing("se"));
        assert_eq!(words(press(&mut app, "\np")), "peek 20");
        press(&mut app, "/xyz\u{1b}");
        assert_eq!(app.selection.filter, "se", "escape takes the one before");
        press(&mut app, "/qq\n");
        assert_eq!(app.selection.filter, "seqq");
        assert_eq!(press(&mut app, "q"), Action::Quit, "no letter of the filter any more");
    }

    #[test]
    fn keys_of_the_screen() {
        let mut app = app();
        press(&mut app, ">");
        assert_eq!(app.selection.sort, Sort::Tiny);
        press(&mut app, "<");
        assert_eq!(app.selection.sort, Sort::Pid);
        press(&mut app, " ");
        assert!(app.view(1.0, Style::default()).paused);
        press(&mut app, " ?");
        assert!(!app.paused && app.view(1.0, Style::default()).help);
        assert_eq!(press(&mut app, "q"), Action::Stay, "any key ends the help");
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        let actions = ['c', 'l', 'z', 'x'].map(|letter| app.key(control(letter)));
        assert_eq!(actions, [Action::Quit, Action::Redraw, Action::Suspend, Action::Stay]);
    }
}
