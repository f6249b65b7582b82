//! Measures: first a pilot that finds the number of bytes per sample of each cell, then interleaved rounds in random
//! order until the intervals reach the precision or the budget is spent.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::axes::{CacheState, SyncKind, Workload};
use crate::cache;
use crate::directory::BenchDirectory;
use crate::disturbance::MachineCounters;
use crate::error::Error;
use crate::figures::Figures;
use crate::job::{Job, Measured, SampleOutcome};
use crate::pilot::{Pilot, Step};
use crate::plan::Cell;
use crate::rounds::{self, SampleRequest};
use crate::sample::{self, SampleEnd};
use crate::verify::verify;
use weir_model::bench::Round;

/// Budget, precision and order of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Wall-clock time of the run. A sample that runs at its end is completed.
    pub budget: Duration,
    /// Relative half width of the intervals at which measuring ends; 0.02 is 2 %.
    pub precision: f64,
    /// Whether slow cells run over all bytes instead of a part.
    pub exact: bool,
    /// Number of rounds of all cells, whatever the budget; `None` means until precision or budget is reached.
    pub rounds: Option<usize>,
    /// Seed of the random order; `None` is a new seed.
    pub seed: Option<u64>,
}

/// Receives the progress of the run. Called only between samples, so that it does not disturb one.
pub trait Progress {
    /// Reports the spent share of the budget (0 to 1), the time left, and a label of the next step.
    fn advance(&mut self, share: f64, left: Duration, next: &str);
}

/// One sample of a cell.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Index of the round, from 0.
    pub round: usize,
    /// Figures, scaled to the cell's whole bytes.
    pub figures: Figures,
}

/// A cell with its samples so far.
#[derive(Debug, Clone)]
pub struct Track {
    /// The parameters of every sample.
    pub cell: Cell,
    /// Bytes that each sample moves.
    pub measured_bytes: u64,
    /// The reason if the cell cannot be measured.
    pub cannot: Option<String>,
    /// A remark of the C loop, such as a fallback.
    pub remark: Option<String>,
    /// Whether the output was compared with the expected bytes.
    pub verified: bool,
    /// Largest share of the input, 0 to 1, that was cached before a sample of a cold cell.
    pub cached_before: Option<f64>,
    /// One sample per round in which the cell was measured.
    pub samples: Vec<Sample>,
    /// Second samples of the same rounds, for the noise.
    pub twins: Vec<Sample>,
    /// Whether each round takes a second sample.
    pub has_twin: bool,
    /// Wall-clock seconds of a sample, including process start and clean-up.
    pub wall_s: f64,
    /// The part of `wall_s` that grows with the bytes.
    pub work_s: f64,
}

/// The result of a run, complete or not.
#[derive(Debug)]
pub struct Measurement {
    /// One track per cell, in the plan's order.
    pub tracks: Vec<Track>,
    /// Every round with its disturbances, in order of time.
    pub rounds: Vec<Round>,
    /// Whether the run was neither stopped nor failed.
    pub complete: bool,
    /// The error that ended the run early.
    pub error: Option<Error>,
    /// Seed of the order of the rounds, given or new.
    pub seed: u64,
}

/// Rounds per cell for which samples are sized.
pub(crate) const WANTED_ROUNDS: f64 = 12.0;
/// Estimated time per sample outside the loop: process start, preparation and removal of files.
const AROUND_SAMPLE_S: f64 = 0.006;
/// Shortest and longest target time of a sample that moves a part of the bytes.
pub(crate) const SAMPLE_S: (f64, f64) = (0.008, 0.4);

/// Measures `cells`. If `stop` becomes true, the run ends early and returns the samples so far.
pub fn run(
    cells: Vec<Cell>,
    directories: &[BenchDirectory],
    settings: &Settings,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Measurement {
    let mut runner = Runner::new(cells, directories, settings, stop, progress);
    let ended = runner.prepare().and_then(|()| runner.rounds());
    let (complete, error) = match ended {
        Ok(()) => (true, None),
        Err(Halt::Stopped) => (false, None),
        Err(Halt::Failed(error)) => (false, Some(error)),
    };
    Measurement { tracks: runner.tracks, rounds: runner.rounds, complete, error, seed: runner.seed }
}

/// One sample with the parent's measurements.
struct Attempt {
    measured: Measured,
    /// Bytes of a cold input that came from the device, read-ahead included.
    from_device: u64,
    /// Wall-clock seconds, including process start and clean-up.
    wall_s: f64,
}

/// Why a run ends early.
enum Halt {
    Stopped,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

struct Runner<'a> {
    tracks: Vec<Track>,
    rounds: Vec<Round>,
    directories: &'a [BenchDirectory],
    settings: &'a Settings,
    stop: &'a AtomicBool,
    progress: &'a mut dyn Progress,
    started: Instant,
    seed: u64,
}

impl<'a> Runner<'a> {
    fn new(
        cells: Vec<Cell>,
        directories: &'a [BenchDirectory],
        settings: &'a Settings,
        stop: &'a AtomicBool,
        progress: &'a mut dyn Progress,
    ) -> Self {
        let track = |cell: Cell| Track {
            cannot: cell.cannot.clone().or_else(|| directories[cell.directory].cannot.clone()),
            measured_bytes: 0,
            remark: None,
            verified: false,
            cached_before: None,
            samples: Vec::new(),
            twins: Vec::new(),
            has_twin: false,
            wall_s: 0.0,
            work_s: 0.0,
            cell,
        };
        let tracks = cells.into_iter().map(track).collect();
        // 32 bits: other tools read the number from JSON as a double.
        let seed = settings.seed.unwrap_or_else(|| u64::from(weir_sys::clock::now_ns() as u32));
        let started = Instant::now();
        Self { tracks, rounds: Vec::new(), directories, settings, stop, progress, started, seed }
    }

    fn left(&self) -> Duration {
        self.settings.budget.saturating_sub(self.started.elapsed())
    }

    fn announce(&mut self, next: &str) -> std::result::Result<(), Halt> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Halt::Stopped);
        }
        let share = self.started.elapsed().as_secs_f64() / self.settings.budget.as_secs_f64().max(1e-9);
        let left = self.left();
        self.progress.advance(share.min(1.0), left, next);
        Ok(())
    }

    /// Creates the inputs, runs the pilot of every cell, and chooses the twins.
    fn prepare(&mut self) -> std::result::Result<(), Halt> {
        for directory in 0..self.directories.len() {
            self.make_input(directory)?;
        }
        let measured = self.tracks.iter().filter(|track| track.cannot.is_none()).count();
        let wanted = self.settings.rounds.map_or(WANTED_ROUNDS, |rounds| rounds as f64);
        let samples = (measured + rounds::TWINS) as f64 * wanted;
        let target_s = 0.75 * self.settings.budget.as_secs_f64() / samples.max(1.0) - AROUND_SAMPLE_S;
        let target_s = target_s.clamp(SAMPLE_S.0, SAMPLE_S.1);
        for index in 0..self.tracks.len() {
            if self.tracks[index].cannot.is_none() {
                self.pilot(index, target_s)?;
            }
        }
        rounds::choose_twins(&mut self.tracks);
        if !self.settings.exact {
            let left_s = self.left().as_secs_f64();
            rounds::fit_to_budget(&mut self.tracks, left_s, wanted);
        }
        Ok(())
    }

    /// Creates the input file: text in lines, synced to the device.
    fn make_input(&mut self, directory: usize) -> std::result::Result<(), Halt> {
        let in_directory = |track: &&Track| track.cell.directory == directory && track.cannot.is_none();
        let needed = self.tracks.iter().filter(in_directory).filter(|track| track.cell.workload.has_input());
        let Some(bytes) = needed.map(|track| track.cell.bytes).max() else { return Ok(()) };
        self.announce("the input file")?;
        let job = Job {
            out_path: Some(self.directories[directory].input_file().into()),
            sync: SyncKind::End.number() as u32,
            ..Job::plain("syscall", Workload::Write, bytes, 1 << 20)
        };
        match sample::run(&job, "the input file", self.stop)? {
            SampleEnd::Stopped => Err(Halt::Stopped),
            SampleEnd::Finished(SampleOutcome::Ok(_), _) => Ok(()),
            SampleEnd::Finished(outcome, _) => Err(failure("the input file", outcome).into()),
        }
    }

    /// Finds how many bytes a sample of the cell moves in about `target_s`, and checks its output.
    fn pilot(&mut self, index: usize, target_s: f64) -> std::result::Result<(), Halt> {
        let cell = self.tracks[index].cell.clone();
        let mut pilot = Pilot::new(&cell, target_s, self.settings.exact);
        let mut bytes = pilot.first(&cell);
        loop {
            let Some(tried) = self.attempt(index, bytes, true)? else { return Ok(()) };
            let seconds = (tried.measured.transfer_ns + tried.measured.sync_ns) as f64 / 1e9;
            let step = match pilot.after(bytes, seconds, tried.measured.cpu_ns as f64 / 1e9) {
                // Out of time: use the last attempt.
                Step::Again(_) if self.left().is_zero() => Step::Done(bytes, seconds),
                step => step,
            };
            match step {
                Step::Again(more) => bytes = more,
                Step::Done(bytes, work_s) => {
                    let track = &mut self.tracks[index];
                    track.measured_bytes = bytes;
                    track.work_s = work_s;
                    track.wall_s = (tried.wall_s - seconds).max(0.0) + work_s;
                    return Ok(());
                }
            }
        }
    }

    /// Takes one sample: prepares its files, runs it, removes the files. Returns `None` if the cell cannot be measured.
    fn attempt(
        &mut self,
        index: usize,
        bytes: u64,
        check: bool,
    ) -> std::result::Result<Option<Attempt>, Halt> {
        let started = Instant::now();
        let cell = self.tracks[index].cell.clone();
        self.announce(&cell.label())?;
        let directory = &self.directories[cell.directory];
        let (in_path, out_path) = (directory.input_file(), directory.output_file());
        if cell.workload.has_input() && !self.set_cache(index, bytes)? {
            return Ok(None);
        }
        let job = cell.job(bytes, &in_path, &out_path);
        let ended = sample::run(&job, &cell.label(), self.stop);
        let checked = match &ended {
            Ok(SampleEnd::Finished(SampleOutcome::Ok(_), _)) if check => verify(&cell, bytes, &out_path),
            _ => Ok(()),
        };
        let removed = match fs::remove_file(&out_path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::system("unlink", &out_path, &error, ""))
            }
            _ => Ok(()),
        };
        let ended = ended?;
        checked?;
        removed?;
        let track = &mut self.tracks[index];
        match ended {
            SampleEnd::Stopped => Err(Halt::Stopped),
            SampleEnd::Finished(SampleOutcome::Cannot(why), _) => {
                track.cannot = Some(why);
                Ok(None)
            }
            SampleEnd::Finished(SampleOutcome::Ok(measured), _) => {
                track.verified |= check && cell.workload.has_output();
                // A remark on the few bytes of a pilot may not hold for a whole sample.
                if !check && !measured.remark.is_empty() {
                    track.remark = Some(measured.remark.clone());
                }
                let from_device = match cell.cache {
                    CacheState::Cold => cache::cached_bytes(&in_path, cell.bytes)?,
                    CacheState::Warm => 0,
                };
                Ok(Some(Attempt {
                    measured: *measured,
                    from_device,
                    wall_s: started.elapsed().as_secs_f64(),
                }))
            }
            SampleEnd::Finished(outcome, _) => Err(failure(&cell.label(), outcome).into()),
        }
    }

    /// Brings the input into the cell's cache state. Returns false if the file system has no such state.
    fn set_cache(&mut self, index: usize, bytes: u64) -> std::result::Result<bool, Halt> {
        let cell = &self.tracks[index].cell;
        let directory = &self.directories[cell.directory];
        // A cold file must be cold to its end, because read-ahead goes beyond the bytes of a sample.
        let range = if cell.cache == CacheState::Cold { cell.bytes } else { bytes };
        let cached = cache::prepare(&directory.input_file(), range, cell.cache)?;
        if cell.cache == CacheState::Warm {
            return Ok(true);
        }
        let track = &mut self.tracks[index];
        if directory.input_fs() == "tmpfs" {
            track.cannot = Some("tmpfs lives in the page cache: it is never cold".into());
            return Ok(false);
        }
        track.cached_before = Some(track.cached_before.unwrap_or(0.0).max(cached));
        Ok(true)
    }

    fn rounds(&mut self) -> std::result::Result<(), Halt> {
        let mut order = StdRng::seed_from_u64(self.seed);
        loop {
            let left_s = self.left().as_secs_f64();
            let mut requests = match self.settings.rounds {
                Some(wanted) => rounds::all_until(&self.tracks, &self.rounds, wanted),
                None => rounds::choose(&self.tracks, &self.rounds, left_s, self.settings.precision),
            };
            if requests.is_empty() {
                return Ok(());
            }
            requests.shuffle(&mut order);
            let before = MachineCounters::now();
            let ended = self.round(&requests);
            let taken = self.samples_of(self.rounds.len());
            let mut round = before.round_until(&MachineCounters::now(), taken);
            let again = self.left().as_secs_f64() > round.took_s * 1.3;
            round.repeated = ended.is_ok() && again && rounds::repeat(&round, &self.rounds);
            self.rounds.push(round);
            ended?;
        }
    }

    fn samples_of(&self, round: usize) -> usize {
        let all = self.tracks.iter().flat_map(|track| track.samples.iter().chain(&track.twins));
        all.filter(|sample| sample.round == round).count()
    }

    fn round(&mut self, requests: &[SampleRequest]) -> std::result::Result<(), Halt> {
        for request in requests {
            // Out of time: only cells without a sample are still measured.
            let enough = request.twin || !self.tracks[request.cell].samples.is_empty();
            if self.settings.rounds.is_none() && self.left().is_zero() && enough {
                continue;
            }
            let bytes = self.tracks[request.cell].measured_bytes;
            let Some(taken) = self.attempt(request.cell, bytes, false)? else { continue };
            let round = self.rounds.len();
            let track = &mut self.tracks[request.cell];
            track.wall_s = 0.5 * (track.wall_s + taken.wall_s);
            let sample =
                Sample { round, figures: Figures::of(&taken.measured, &track.cell, taken.from_device) };
            if request.twin { track.twins.push(sample) } else { track.samples.push(sample) }
        }
        Ok(())
    }
}

fn failure(label: &str, outcome: SampleOutcome) -> Error {
    match outcome {
        SampleOutcome::Failed { errno, call, path } if path.is_empty() => {
            Error::errno(&call, std::path::Path::new(label), errno)
        }
        SampleOutcome::Failed { errno, call, path } => {
            Error::errno(&call, std::path::Path::new(&path), errno)
        }
        SampleOutcome::Cannot(why) => Error::Failed(format!("{label}: {why}")),
        SampleOutcome::Ok(_) => Error::Failed(format!("{label}: no error")),
    }
}
