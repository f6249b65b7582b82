//! The live screen of `weir top`: takes surveys, draws them, and acts on keys.

mod app;
mod forced_end;
mod input;
mod screen;
mod subcommand;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ratatui_crossterm::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use rustix::process::Signal;
use weir_model::top::Survey;
use weir_report::top::Selection;

use crate::POLL_INTERVAL;
use crate::style::stdout_style;
use app::{Action, App};
use input::TerminalInput;
use screen::TopScreen;

/// Longest time to the second survey. Rates need two surveys, so the table is empty until then.
const FIRST_INTERVAL: Duration = Duration::from_millis(300);

/// How long the output of a subcommand stays on the screen without a key: long enough to be without a limit.
const SUBCOMMAND_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The last state of the live screen.
#[allow(missing_docs)]
pub struct TopSession {
    pub survey: Survey,
    /// Sort key and filter at the end.
    pub selection: Selection,
}

/// Shows the live screen until the user quits, or until a handler stores a signal number in `signal`.
///
/// `take_survey` is called every `interval`, also while the screen is paused. Fails if the terminal does; after
/// a signal such an error is ignored, because closing a terminal window sends SIGHUP and makes the terminal fail.
pub fn run(
    take_survey: impl FnMut() -> Survey,
    selection: Selection,
    interval: Duration,
    signal: &Arc<AtomicUsize>,
) -> io::Result<TopSession> {
    let input = TerminalInput::open()?;
    let mut screen = TopScreen::enter()?;
    forced_end::after(Arc::clone(signal))?;
    let mut event_loop = EventLoop { take_survey, app: App::new(selection), input, interval, signal };
    let result = event_loop.run(&mut screen);
    drop(screen);
    if !event_loop.is_signalled() {
        result?;
    }
    Ok(TopSession { survey: event_loop.app.survey, selection: event_loop.app.selection })
}

struct EventLoop<'a, F> {
    take_survey: F,
    app: App,
    input: TerminalInput,
    interval: Duration,
    signal: &'a AtomicUsize,
}

impl<F: FnMut() -> Survey> EventLoop<'_, F> {
    fn run(&mut self, screen: &mut TopScreen) -> io::Result<()> {
        self.app.update((self.take_survey)());
        let mut next_survey = Instant::now() + self.interval.min(FIRST_INTERVAL);
        loop {
            screen.draw(&self.app.view(self.interval.as_secs_f64(), stdout_style()))?;
            let key = self.key_until(next_survey)?;
            if self.is_signalled() {
                return Ok(());
            }
            match key.map_or(Action::Continue, |key| self.app.handle_key(key)) {
                Action::Quit => return Ok(()),
                action => self.perform(action, screen)?,
            }
            if Instant::now() >= next_survey {
                // Surveys go on while paused, so that the first interval after the pause does not include the pause.
                let survey = (self.take_survey)();
                if !self.app.paused {
                    self.app.update(survey);
                }
                next_survey = Instant::now() + self.interval;
            }
        }
    }

    fn is_signalled(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// Returns the next key. Returns None at `deadline`, after a signal, and when the terminal changes its size.
    fn key_until(&self, deadline: Instant) -> io::Result<Option<KeyEvent>> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // crossterm may hold keys of an earlier read, or may have noticed another size.
            self.input.wait(Duration::ZERO)?;
            while event::poll(Duration::ZERO)? {
                match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => return Ok(Some(key)),
                    Event::Resize(..) => return Ok(None),
                    _ => {}
                }
            }
            if !self.input.wait(left.min(POLL_INTERVAL))? && (left <= POLL_INTERVAL || self.is_signalled()) {
                return Ok(None);
            }
        }
    }

    fn perform(&mut self, action: Action, screen: &mut TopScreen) -> io::Result<()> {
        match action {
            Action::Continue | Action::Quit => Ok(()),
            Action::Redraw => screen.clear(),
            Action::Suspend => screen.with_normal_screen(stop_process),
            Action::Run(arguments) => screen.with_line_mode(
                || {
                    subcommand::run(&arguments);
                    // A Ctrl-C during the subcommand was meant for the subcommand.
                    let interrupt = Signal::INT.as_raw() as usize;
                    let _ = self.signal.compare_exchange(interrupt, 0, Ordering::Relaxed, Ordering::Relaxed);
                },
                || self.key_until(Instant::now() + SUBCOMMAND_TIMEOUT).map(drop),
            ),
        }
    }
}

/// Stops this process until the shell continues it.
fn stop_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}
