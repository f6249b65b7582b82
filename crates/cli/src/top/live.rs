//! The loop of the live screen: looks, draws, waits for a key or the next look.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ratatui_crossterm::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use signal_hook::consts::SIGINT;
use weir_model::survey::Survey;
use weir_probe::survey::{Scope, Surveyor};
use weir_report::top::Selection;

use super::app::{Action, App};
use super::child;
use super::terminal::Screen;
use crate::screen;
use crate::signals::stop_number;

/// A signal that ends weir is noticed within this time.
const NOTICE: Duration = Duration::from_millis(200);
/// The second look comes sooner than the others: until then there are no figures.
const FIRST: Duration = Duration::from_millis(300);

/// What another verb has shown stays for this time at most.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// How it ended.
pub struct Ended {
    /// The last look.
    pub survey: Survey,
    /// As it was sorted and filtered at the end.
    pub selection: Selection,
    /// The exit status.
    pub status: u8,
}

/// Runs until a key or a signal ends it.
pub fn run(scope: Scope, selection: Selection, interval: Duration) -> Result<Ended, String> {
    let signal = stop_number()?;
    let terminal = |error: io::Error| format!("terminal: {error}; use 'weir top --once' where there is none");
    let mut screen = Screen::enter().map_err(terminal)?;
    let mut live = Live { surveyor: Surveyor::new(scope), app: App::new(selection), interval, signal };
    let ended = live.run(&mut screen);
    drop(screen);
    let number = live.signal.load(Ordering::Relaxed);
    // The terminal of a window that was closed fails, and that is what SIGHUP says.
    if number == 0 {
        ended.map_err(terminal)?;
    }
    let status = if number == 0 { 0 } else { 128 + number as u8 };
    Ok(Ended { survey: live.app.survey, selection: live.app.selection, status })
}

struct Live {
    surveyor: Surveyor,
    app: App,
    interval: Duration,
    signal: Arc<AtomicUsize>,
}

impl Live {
    fn run(&mut self, screen: &mut Screen) -> io::Result<()> {
        self.app.take(self.surveyor.sample());
        let mut next = Instant::now() + self.interval.min(FIRST);
        loop {
            screen.draw(&self.app.view(self.interval.as_secs_f64(), screen::style()))?;
            let key = self.key_until(next)?;
            if self.signal.load(Ordering::Relaxed) != 0 {
                return Ok(());
            }
            match key.map_or(Action::Stay, |key| self.app.key(key)) {
                Action::Quit => return Ok(()),
                action => self.act(action, screen)?,
            }
            if Instant::now() >= next {
                // What happened in a pause belongs to no interval that is shown: looks go on, unseen.
                let survey = self.surveyor.sample();
                if !self.app.paused {
                    self.app.take(survey);
                }
                next = Instant::now() + self.interval;
            }
        }
    }

    /// The next key, or None when the time has come or a signal has.
    fn key_until(&self, end: Instant) -> io::Result<Option<KeyEvent>> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if event::poll(left.min(NOTICE))? {
                match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => return Ok(Some(key)),
                    Event::Resize(..) => return Ok(None),
                    _ => {}
                }
            } else if left <= NOTICE || self.signal.load(Ordering::Relaxed) != 0 {
                return Ok(None);
            }
        }
    }

    fn act(&mut self, action: Action, screen: &mut Screen) -> io::Result<()> {
        match action {
            Action::Stay | Action::Quit => Ok(()),
            Action::Redraw => screen.clear(),
            Action::Suspend => screen.leave(stop),
            Action::Run(words) => screen.lend(
                || {
                    child::run(&words);
                    // Ctrl-C was meant for the other verb.
                    let (ours, none) = (SIGINT as usize, 0);
                    let _ = self.signal.compare_exchange(ours, none, Ordering::Relaxed, Ordering::Relaxed);
                },
                || self.key_until(Instant::now() + LONG).map(drop),
            ),
        }
    }
}

/// Until the shell lets it go on.
fn stop() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}
