//! The state of the live screen, and what each key does to it.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use weir_model::top::Survey;
use weir_report::Style;
use weir_report::top::{Foot, Selection, TopView};

/// Rows that PageUp and PageDown move: about half of the list on a terminal of 24 rows.
const PAGE_ROWS: usize = 10;

/// Highest number of help lines above the screen. If the help is shorter, the screen shows its last lines.
const MAX_HELP_LINE: usize = 60;

/// The action of the event loop after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Waits for the next key.
    Continue,
    /// Draws every cell again.
    Redraw,
    /// Closes the screen and ends weir.
    Quit,
    /// Stops the process, as Ctrl-Z in a shell.
    Suspend,
    /// Runs weir with these arguments, then waits for a key.
    Run(Vec<String>),
}

/// Decides what the next key means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum InputMode {
    #[default]
    List,
    /// The user types a filter; Escape restores the previous one.
    Filter { previous: String },
    /// The user was asked whether to flush this process.
    ConfirmFlush { process: SelectedProcess, question: String },
    /// The help from this line on.
    Help(usize),
}

/// A process of the list. Its start time identifies it, because the kernel can reuse its PID before the user has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SelectedProcess {
    pid: u32,
    start_ticks: u64,
}

/// The state of the live screen.
#[derive(Debug)]
pub struct App {
    /// The survey on the screen.
    pub survey: Survey,
    /// Sort key and filter of the list.
    pub selection: Selection,
    /// Whether new surveys are discarded.
    pub paused: bool,
    selected_pid: Option<u32>,
    /// The user has selected the process. Until then the first one of the list is selected, so that the list shows its top.
    is_chosen: bool,
    input_mode: InputMode,
    message: String,
}

impl App {
    /// Returns the state before the first survey.
    pub fn new(selection: Selection) -> App {
        App {
            survey: Survey::default(),
            selection,
            paused: false,
            selected_pid: None,
            is_chosen: false,
            input_mode: InputMode::List,
            message: String::new(),
        }
    }

    /// Replaces the survey. The selected process stays selected if it is still in the list.
    pub fn update(&mut self, survey: Survey) {
        self.survey = survey;
        self.repair_selection();
    }

    /// Returns what `weir_report::top::draw` draws.
    pub fn view(&self, interval_s: f64, style: Style) -> TopView<'_> {
        let foot = match &self.input_mode {
            InputMode::Filter { .. } => Foot::Typing(&self.selection.filter),
            InputMode::ConfirmFlush { question, .. } => Foot::Question(question),
            _ if !self.message.is_empty() => Foot::Message(&self.message),
            _ => Foot::Keys,
        };
        TopView {
            survey: &self.survey,
            selection: &self.selection,
            selected: self.selected_pid,
            foot,
            paused: self.paused,
            help: match self.input_mode {
                InputMode::Help(line) => Some(line),
                _ => None,
            },
            interval_s,
            style,
        }
    }

    /// Changes the state for one key and returns what the event loop must do.
    pub fn handle_key(&mut self, key: KeyEvent) -> Action {
        self.message.clear();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (control, key.code) {
            (true, KeyCode::Char('c')) => return Action::Quit,
            (true, KeyCode::Char('l')) => return Action::Redraw,
            (true, KeyCode::Char('z')) => return Action::Suspend,
            (true, _) => return Action::Continue,
            _ => {}
        }
        match std::mem::take(&mut self.input_mode) {
            InputMode::List => self.handle_list_key(key.code),
            InputMode::Filter { previous } => self.handle_filter_key(key.code, previous),
            InputMode::ConfirmFlush { process, .. } if matches!(key.code, KeyCode::Char('y' | 'Y')) => {
                run_verb("flush", process)
            }
            InputMode::ConfirmFlush { .. } => {
                self.message = "nothing was flushed".into();
                Action::Continue
            }
            InputMode::Help(line) => {
                if let Some(line) = moved(key.code, line) {
                    self.input_mode = InputMode::Help(line.min(MAX_HELP_LINE));
                }
                Action::Continue
            }
        }
    }

    fn handle_list_key(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?' | 'h') => self.input_mode = InputMode::Help(0),
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('/') => {
                self.input_mode = InputMode::Filter { previous: self.selection.filter.clone() };
            }
            KeyCode::Char('s' | '>') => self.selection.sort = self.selection.sort.next(1),
            KeyCode::Char('<') => self.selection.sort = self.selection.sort.previous(),
            KeyCode::Char('p') | KeyCode::Enter => {
                return self.with_selected(|_, process| run_verb("peek", process));
            }
            KeyCode::Char('t') => return self.with_selected(|_, process| run_verb("trace", process)),
            KeyCode::Char('f') => {
                return self.with_selected(|app, process| {
                    let question = app.flush_question(process.pid);
                    app.input_mode = InputMode::ConfirmFlush { process, question };
                    Action::Continue
                });
            }
            code => self.move_selection(code),
        }
        Action::Continue
    }

    fn move_selection(&mut self, code: KeyCode) {
        let pids: Vec<u32> = self.selection.select(&self.survey).iter().map(|process| process.pid).collect();
        let row = pids.iter().position(|pid| self.selected_pid == Some(*pid)).unwrap_or(0);
        let last_row = pids.len().saturating_sub(1);
        let Some(new_row) = moved(code, row) else { return };
        self.selected_pid = pids.get(new_row.min(last_row)).copied();
        self.is_chosen = !matches!(code, KeyCode::Home | KeyCode::Char('g'));
    }

    fn handle_filter_key(&mut self, code: KeyCode, previous: String) -> Action {
        match code {
            KeyCode::Esc => self.selection.filter = previous,
            KeyCode::Enter => {}
            code => {
                match code {
                    KeyCode::Backspace => drop(self.selection.filter.pop()),
                    KeyCode::Char(letter) => self.selection.filter.push(letter),
                    _ => {}
                }
                self.input_mode = InputMode::Filter { previous };
            }
        }
        self.repair_selection();
        Action::Continue
    }

    /// Selects the first process of the list if the user has selected none, or one that is no longer in it.
    fn repair_selection(&mut self) {
        let listed = self.selection.select(&self.survey);
        if !self.is_chosen || !listed.iter().any(|process| self.selected_pid == Some(process.pid)) {
            self.is_chosen = false;
            self.selected_pid = listed.first().map(|process| process.pid);
        }
    }

    fn with_selected(&mut self, act: impl Fn(&mut App, SelectedProcess) -> Action) -> Action {
        let selected = self.survey.processes.iter().find(|process| self.selected_pid == Some(process.pid));
        match selected.map(|one| SelectedProcess { pid: one.pid, start_ticks: one.start_ticks }) {
            Some(process) => {
                self.is_chosen = true;
                act(self, process)
            }
            None => {
                self.message = "no process is selected".into();
                Action::Continue
            }
        }
    }

    fn flush_question(&self, pid: u32) -> String {
        let process = self.survey.processes.iter().find(|process| process.pid == pid);
        let comm = process.map_or("process".to_string(), |process| process.comm.to_string());
        format!("Write the pending bytes of {comm} {pid} now?")
    }
}

/// Returns the line or row after a key that moves; None for other keys. The caller bounds it.
fn moved(code: KeyCode, from: usize) -> Option<usize> {
    Some(match code {
        KeyCode::Down | KeyCode::Char('j') => from + 1,
        KeyCode::Up | KeyCode::Char('k') => from.saturating_sub(1),
        KeyCode::PageDown => from + PAGE_ROWS,
        KeyCode::PageUp => from.saturating_sub(PAGE_ROWS),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => return None,
    })
}

fn run_verb(verb: &str, process: SelectedProcess) -> Action {
    let pid = process.pid.to_string();
    let rest = if verb == "trace" { vec!["-p", &pid, "-t", "5s"] } else { vec![&*pid] };
    // A process that does not answer has no known start.
    let start = Some(format!("--start-ticks={}", process.start_ticks)).filter(|_| process.start_ticks > 0);
    let words = std::iter::once(verb.to_string()).chain(start);
    Action::Run(words.chain(rest.into_iter().map(String::from)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::top::ProcessActivity;
    use weir_report::top::Sort;

    fn app() -> App {
        let selection = Selection { sort: Sort::Pid, ..Selection::default() };
        let mut app = App::new(selection);
        app.update(survey(&[(10, "cat"), (20, "sed"), (30, "awk")]));
        app
    }

    fn survey(processes: &[(u32, &str)]) -> Survey {
        let activity = |&(pid, comm): &(u32, &str)| ProcessActivity {
            pid,
            start_ticks: u64::from(pid) + 7000,
            comm: comm.into(),
            command: comm.into(),
            ..ProcessActivity::default()
        };
        Survey { elapsed_s: 1.0, processes: processes.iter().map(activity).collect(), ..Survey::default() }
    }

    fn press(app: &mut App, keys: &str) -> Action {
        let mut action = Action::Continue;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                key => KeyCode::Char(key),
            };
            action = app.handle_key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        action
    }

    fn arguments(action: Action) -> String {
        match action {
            Action::Run(arguments) => arguments.join(" "),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn keys_act_on_the_selected_process() {
        let mut app = app();
        assert_eq!(arguments(press(&mut app, "p")), "peek --start-ticks=7010 10");
        assert_eq!(arguments(press(&mut app, "jp")), "peek --start-ticks=7020 20");
        assert_eq!(arguments(press(&mut app, "jjjt")), "trace --start-ticks=7030 -p 30 -t 5s");
        assert_eq!(arguments(press(&mut app, "kp")), "peek --start-ticks=7020 20");
        assert_eq!(arguments(press(&mut app, "G\n")), "peek --start-ticks=7030 30");
        app.update(survey(&[(5, "new"), (30, "awk")]));
        assert_eq!(
            arguments(press(&mut app, "p")),
            "peek --start-ticks=7030 30",
            "the selected process stays selected"
        );
        app.update(survey(&[(5, "new")]));
        assert_eq!(
            arguments(press(&mut app, "p")),
            "peek --start-ticks=7005 5",
            "the first process, when the selected one has ended"
        );
        app.update(Survey::default());
        assert_eq!(press(&mut app, "p"), Action::Continue);
        assert_eq!(app.view(1.0, Style::default()).foot, Foot::Message("no process is selected"));
    }

    #[test]
    fn the_first_process_is_selected_until_the_user_moves() {
        let mut app = app();
        let selected = |app: &App| app.view(1.0, Style::default()).selected;
        app.update(survey(&[(5, "new"), (10, "cat"), (20, "sed")]));
        assert_eq!(selected(&app), Some(5));
        press(&mut app, "j");
        app.update(survey(&[(4, "new"), (5, "new"), (10, "cat")]));
        assert_eq!(selected(&app), Some(10), "the user has selected it");
        press(&mut app, "g");
        app.update(survey(&[(3, "new"), (4, "new")]));
        assert_eq!(selected(&app), Some(3), "the first one again");
    }

    #[test]
    fn flush_needs_a_yes() {
        let mut app = app();
        assert_eq!(press(&mut app, "f"), Action::Continue);
        assert_eq!(
            app.view(1.0, Style::default()).foot,
            Foot::Question("Write the pending bytes of cat 10 now?")
        );
        assert_eq!(press(&mut app, "\n"), Action::Continue);
        assert_eq!(press(&mut app, "y"), Action::Continue, "the question is already answered");
        assert_eq!(arguments(press(&mut app, "fy")), "flush --start-ticks=7010 10");
    }

    #[test]
    fn enter_keeps_the_typed_filter_and_escape_restores_the_previous_one() {
        let mut app = app();
        press(&mut app, "/seq\u{8}");
        assert_eq!(app.view(1.0, Style::default()).foot, Foot::Typing("se"));
        assert_eq!(arguments(press(&mut app, "\np")), "peek --start-ticks=7020 20");
        press(&mut app, "/xyz\u{1b}");
        assert_eq!(app.selection.filter, "se", "Escape restores the previous filter");
        press(&mut app, "/qq\n");
        assert_eq!(app.selection.filter, "seqq");
        assert_eq!(press(&mut app, "q"), Action::Quit, "q quits once the filter is entered");
    }

    #[test]
    fn sort_pause_help_and_control_keys() {
        let mut app = app();
        press(&mut app, ">");
        assert_eq!(app.selection.sort, Sort::Tiny);
        press(&mut app, "<");
        assert_eq!(app.selection.sort, Sort::Pid);
        press(&mut app, " ");
        assert!(app.view(1.0, Style::default()).paused);
        press(&mut app, " ?");
        assert!(!app.paused);
        assert_eq!(app.view(1.0, Style::default()).help, Some(0));
        press(&mut app, "jjk");
        assert_eq!(app.view(1.0, Style::default()).help, Some(1), "it can be longer than the screen");
        assert_eq!(press(&mut app, "q"), Action::Continue, "any other key closes the help");
        assert_eq!(app.view(1.0, Style::default()).help, None);
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        let actions = ['c', 'l', 'z', 'x'].map(|letter| app.handle_key(control(letter)));
        assert_eq!(actions, [Action::Quit, Action::Redraw, Action::Suspend, Action::Continue]);
    }
}
