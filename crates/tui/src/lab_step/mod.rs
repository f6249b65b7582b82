//! The viewer of `weir lab NAME --step`: shows the recorded run of a program step by step, forward and back.

mod keys;
mod terminal;

use std::io;
use std::sync::atomic::AtomicBool;

use weir_model::lab::ProgramVersion;
use weir_model::lab::step::LabStep;
use weir_report::lab::step::{StepView, frame};

use crate::style::stdout_style;
use keys::StepKey;
use terminal::{StepTerminal, TerminalEvent};

/// The recorded run of an experiment's program, and the texts of the experiment that the viewer shows with it.
pub struct StepViewer {
    /// Name of the experiment and which of its programs ran.
    title: String,
    expect: String,
    help: String,
    steps: Vec<LabStep>,
}

/// The texts of an experiment that the viewer shows.
#[allow(missing_docs)]
pub struct ExperimentTexts<'a> {
    pub name: &'a str,
    pub expect: &'a str,
    pub why: &'a str,
    pub fix: &'a str,
}

impl StepViewer {
    /// Returns the viewer of a run of one program of the experiment. `steps` must not be empty.
    pub fn new(experiment: &ExperimentTexts, version: ProgramVersion, steps: Vec<LabStep>) -> StepViewer {
        let ExperimentTexts { name, expect, why, fix } = experiment;
        let help = format!(
            "The upper boxes are buffers in processes. The lower boxes are the files and pipes that the processes \
             write to. A step is a system call, or what the program printed between two system calls. A fully \
             buffered stream is written when its buffer is full, a line buffered stream also at a newline, an \
             unbuffered stream at once.\n\n{why}\n\n\
             Fix: {fix}\n\n\
             weir lab {name} --source shows the program, --fixed the fixed program, --step --fixed its run.\n\n\
             next: → n space   back: ← p   first: Home   last: End   quit: q   this page: ?\n\
             Any key but q leaves this page."
        );
        let program = match version {
            ProgramVersion::Broken => "the program with the fault",
            ProgramVersion::Fixed => "the fixed program",
        };
        StepViewer { title: format!("{name}, {program}"), expect: expect.to_string(), help, steps }
    }

    /// Returns all steps as text, for a standard output that is not a terminal.
    pub fn text(&self) -> String {
        let step_text = |index: usize| frame(&self.view(index, false), None).join("\n");
        (0..self.steps.len()).map(step_text).collect::<Vec<_>>().join("\n\n") + "\n"
    }

    /// Shows the steps on the terminal until the user quits, the input ends, or a signal handler sets `stop`.
    pub fn run(&self, stop: &AtomicBool) -> io::Result<()> {
        let mut terminal = StepTerminal::enter()?;
        let (mut index, mut help, last) = (0, false, self.steps.len() - 1);
        loop {
            let rows = terminal.rows();
            terminal.draw(&frame(&self.view(index, help), Some(rows)))?;
            let key = match terminal.wait(stop)? {
                TerminalEvent::Key(key) => key,
                TerminalEvent::Resized => continue,
                TerminalEvent::Closed => return Ok(()),
            };
            let closes_help = std::mem::take(&mut help);
            match key {
                StepKey::Quit => return Ok(()),
                _ if closes_help => {}
                StepKey::Next => index = (index + 1).min(last),
                StepKey::Back => index = index.saturating_sub(1),
                StepKey::Home => index = 0,
                StepKey::End => index = last,
                StepKey::Help => help = true,
            }
        }
    }

    fn view(&self, index: usize, help: bool) -> StepView<'_> {
        StepView {
            name: &self.title,
            expect: &self.expect,
            step: &self.steps[index],
            number: index + 1,
            of: self.steps.len(),
            help: help.then_some(self.help.as_str()),
            style: stdout_style(),
        }
    }
}
