//! `weir lab NAME --step`: records a run of the program, then shows its steps.

use std::io;
use std::sync::atomic::Ordering;

use weir_lab::steps::steps;
use weir_lab::{Error, Experiment, LabOptions};
use weir_model::lab::ProgramVersion;
use weir_sys::file_system::is_terminal;
use weir_tui::lab_step::{ExperimentTexts, StepViewer};

/// Records a run and shows its steps: on a terminal one by one, by keys; elsewhere all of them as text. Returns false
/// if an error was reported. Fails if the recording or the terminal fails, or with [`Error::Stopped`] after a signal.
pub fn run(experiment: &Experiment, version: ProgramVersion, quick: bool) -> Result<bool, Error> {
    let stop = super::stop_flag();
    let options = LabOptions { weir: super::executable(), quick, stop: &stop };
    let recording = weir_lab::record(experiment, version, &options)?;
    let Experiment { name, expect, why, fix, .. } = experiment;
    let viewer = StepViewer::new(&ExperimentTexts { name, expect, why, fix }, version, steps(&recording));
    if !is_terminal(io::stdin()) || !is_terminal(io::stdout()) {
        return Ok(super::print_or_report(&viewer.text()));
    }
    let result = viewer.run(&stop);
    // A closed terminal window sends SIGHUP, and the viewer's calls fail too. The signal is the cause, so report it.
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    result.map_err(|source| Error::File { path: "the terminal".into(), call: "ioctl", source })?;
    Ok(true)
}
