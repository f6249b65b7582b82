//! `weir lab NAME --step`: goes through the recorded run of a program, forward and back.

mod keys;
mod terminal;

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};

use weir_lab::steps::steps;
use weir_lab::{Error, Experiment, Options};
use weir_model::lab::ProgramVersion;
use weir_model::lab::step::LabStep;
use weir_report::lab::step::{View, frame};

use crate::screen::style;
use keys::Key;
use terminal::Terminal;

/// Runs the program, then shows the steps: with keys on a terminal, else one after the other.
pub fn run(experiment: &Experiment, fixed: bool, quick: bool) -> Result<bool, Error> {
    let stop = super::stop_flag();
    let version = if fixed { ProgramVersion::Fixed } else { ProgramVersion::Broken };
    let weir = std::env::current_exe().unwrap_or_else(|_| "weir".into());
    let recording = weir_lab::record(experiment, version, &Options { weir, quick, stop: &stop })?;
    let show = Show::new(experiment, version, steps(&recording));
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(super::said(&show.all()));
    }
    let ended = show.live(&stop);
    // A terminal that was closed fails, and SIGHUP says why.
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    ended.map_err(|source| Error::File { path: "the terminal".into(), call: "ioctl", source })?;
    Ok(true)
}

struct Show {
    name: String,
    expect: String,
    why: String,
    steps: Vec<LabStep>,
}

impl Show {
    fn new(experiment: &Experiment, version: ProgramVersion, steps: Vec<LabStep>) -> Show {
        let Experiment { name, expect, why, fix, .. } = experiment;
        let about = format!(
            "The upper boxes are buffers in processes, the lower ones the files and pipes that they write to. A step \
             is a system call, or what the program printed between two. A fully buffered stream is written out when \
             its buffer is full, a line buffered one at a newline too, an unbuffered one at once.\n\n{why}\n\n\
             Fix: {fix}\n\n\
             weir lab {name} --source shows the program, --fixed the mended one, --step --fixed its run.\n\n\
             next: → n space   back: ← p   first: Home   last: End   quit: q   this page: ?\n\
             Any key but q leaves this page."
        );
        let which = match version {
            ProgramVersion::Broken => "the program with the fault",
            ProgramVersion::Fixed => "the mended program",
        };
        Show { name: format!("{name}, {which}"), expect: expect.clone(), why: about, steps }
    }

    fn view(&self, at: usize, help: bool) -> View<'_> {
        let help = help.then_some(self.why.as_str());
        let of = self.steps.len();
        let (name, expect) = (&self.name, &self.expect);
        View { name, expect, step: &self.steps[at], number: at + 1, of, help, style: style() }
    }

    fn all(&self) -> String {
        let text = |at: usize| frame(&self.view(at, false), None).join("\n");
        (0..self.steps.len()).map(text).collect::<Vec<_>>().join("\n\n") + "\n"
    }

    fn live(&self, stop: &AtomicBool) -> io::Result<()> {
        let mut terminal = Terminal::take()?;
        let (mut at, mut help, last) = (0, false, self.steps.len() - 1);
        loop {
            let rows = terminal.rows();
            terminal.draw(&frame(&self.view(at, help), Some(rows)))?;
            let Some(key) = terminal.key(stop)? else { return Ok(()) };
            let was_help = std::mem::take(&mut help);
            match key {
                Key::Quit => return Ok(()),
                Key::Resized => help = was_help,
                _ if was_help => {}
                Key::Next => at = (at + 1).min(last),
                Key::Back => at = at.saturating_sub(1),
                Key::Home => at = 0,
                Key::End => at = last,
                Key::Help => help = true,
            }
        }
    }
}
