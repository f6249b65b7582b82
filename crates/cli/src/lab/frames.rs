//! Adds the runs call by call to the result of `weir lab`, for its page.

use weir_lab::steps::steps;
use weir_lab::{Error, Experiment, LabOptions, record};
use weir_model::lab::{LabDocument, ProgramVersion, SteppedRun};
use weir_report::lab::step::page_frame;

use super::Args;

/// Frames of a run in a page of one experiment: most experiments have fewer steps.
const MAX_FRAMES: usize = 60;
/// Frames of a run in a page of several experiments.
const FRAMES_OF_SEVERAL: usize = 16;

/// Records the programs of the experiments that ran, and adds their frames. A program that cannot be recorded has none.
/// Fails if the user stops it.
pub fn add(args: &Args, chosen: &[Experiment], document: &mut LabDocument) -> Result<(), Error> {
    let stop = super::stop_flag();
    let options = LabOptions { weir: super::executable(), quick: args.quick, stop: &stop };
    let most = if chosen.len() == 1 { MAX_FRAMES } else { FRAMES_OF_SEVERAL };
    for experiment in chosen {
        let row = document.experiments.iter_mut().find(|row| row.name == experiment.name);
        let Some(row) = row.filter(|row| row.agrees.is_some()) else { continue };
        for version in [ProgramVersion::Broken, ProgramVersion::Fixed] {
            if experiment.has(version) {
                row.steps.extend(stepped(experiment, version, &options, most)?);
            }
        }
    }
    Ok(())
}

fn stepped(
    experiment: &Experiment,
    version: ProgramVersion,
    options: &LabOptions<'_>,
    most: usize,
) -> Result<Option<SteppedRun>, Error> {
    let steps = match record(experiment, version, options) {
        Ok(recording) => steps(&recording),
        Err(Error::Stopped) => return Err(Error::Stopped),
        Err(_) => return Ok(None),
    };
    let frames = steps.iter().take(most).map(page_frame).collect();
    Ok(Some(SteppedRun { version, steps: steps.len(), frames }))
}
