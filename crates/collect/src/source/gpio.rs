//! A GPIO line: its edges with the kernel's time stamps, or its value at intervals. Each change is a record, 1 or 0.

use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant, UNIX_EPOCH};

use gpiocdev::Request;
use gpiocdev::line::{Bias, EdgeDetection, EdgeKind, EventClock, Value};
use rustix::fd::BorrowedFd;

use super::{Source, SourceProgress};
use crate::collector::Collector;
use crate::error::Error;
use crate::intake::Intake;
use crate::options::LogOptions;
use crate::stamp::Receipt;

/// A line of a GPIO chip, and how it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpioSpec {
    chip: PathBuf,
    line: u32,
    bias: Option<Bias>,
    edges: Option<EdgeDetection>,
    active_low: bool,
    debounce: Option<Duration>,
    /// The value is read at this interval; without it the kernel reports edges.
    poll: Option<Duration>,
}

impl FromStr for GpioSpec {
    type Err = String;

    /// Parses CHIP:LINE and words behind commas. CHIP is a number, a name in /dev or a path.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |text: &str| {
            format!(
                "'{text}': use CHIP:LINE, and behind commas pull-up, pull-down, no-pull, rising, falling, active-low, debounce=TIME, poll=TIME"
            )
        };
        let mut words = text.split(',');
        let (chip, line) = words.next().and_then(|word| word.rsplit_once(':')).ok_or_else(|| wrong(text))?;
        let chip = match chip {
            "" => return Err(wrong(text)),
            path if path.contains('/') => PathBuf::from(path),
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("/dev/gpiochip{number}").into()
            }
            name => PathBuf::from("/dev").join(name),
        };
        let line = line.parse().map_err(|_| wrong(text))?;
        let mut spec =
            Self { chip, line, bias: None, edges: None, active_low: false, debounce: None, poll: None };
        for word in words {
            let time =
                |value| weir_model::duration::parse(value).map_err(|error| format!("'{word}': {error}"));
            match word.split_once('=').unwrap_or((word, "")) {
                ("pull-up", "") => spec.bias = Some(Bias::PullUp),
                ("pull-down", "") => spec.bias = Some(Bias::PullDown),
                ("no-pull", "") => spec.bias = Some(Bias::Disabled),
                ("rising", "") => spec.edges = Some(EdgeDetection::RisingEdge),
                ("falling", "") => spec.edges = Some(EdgeDetection::FallingEdge),
                ("active-low", "") => spec.active_low = true,
                ("debounce", value) => spec.debounce = Some(time(value)?),
                ("poll", value) => spec.poll = Some(time(value)?.max(Duration::from_millis(1))),
                _ => return Err(wrong(word)),
            }
        }
        if spec.poll.is_some() && (spec.edges.is_some() || spec.debounce.is_some()) {
            return Err(format!("'{text}': rising, falling and debounce need edges, so leave out poll"));
        }
        Ok(spec)
    }
}

/// A line that weir has requested from the kernel, which then refuses it to other programs.
struct GpioSource {
    request: Request,
    spec: GpioSpec,
    intake: Intake,
    /// The value of the last record.
    value: Option<Value>,
    /// The number of the last edge, as the kernel counts them.
    last_edge: u32,
    /// Changes that the log did not take yet, oldest first.
    held: VecDeque<(Value, Receipt)>,
    next_poll: Option<Instant>,
    ended: bool,
}

/// The edges that one read takes at most, and the kernel's usual buffer for one line.
const EDGES: usize = 16;

/// Requests the line from the kernel.
///
/// # Errors
/// The chip or the line does not exist, or another program owns the line.
pub(super) fn open(spec: &GpioSpec, options: &LogOptions) -> Result<Box<dyn Source>, Error> {
    let mut builder = Request::builder();
    builder
        .on_chip(&spec.chip)
        .with_consumer("weir log")
        .with_line(spec.line)
        .as_input()
        .with_bias(spec.bias);
    if spec.active_low {
        builder.as_active_low();
    }
    if spec.poll.is_none() {
        let edges = spec.edges.unwrap_or(EdgeDetection::BothEdges);
        builder.with_edge_detection(edges).with_event_clock(EventClock::Realtime);
    }
    if let Some(debounce) = spec.debounce {
        builder.with_debounce_period(debounce);
    }
    let request = builder.request().map_err(|error| {
        let chip = crate::error::shown(&spec.chip);
        let text = named_errno(&error.to_string());
        Error::text(format!("gpio {chip}:{}: {text}; gpioinfo lists the chips, lines and owners", spec.line))
    })?;
    let chip = spec.chip.file_name().unwrap_or_default().to_string_lossy();
    let intake = Intake::new(format!("{chip}:{}", spec.line), None, options);
    Ok(Box::new(GpioSource {
        request,
        spec: spec.clone(),
        intake,
        value: None,
        last_edge: 0,
        held: VecDeque::new(),
        next_poll: spec.poll.map(|_| Instant::now()),
        ended: false,
    }))
}

impl GpioSource {
    /// Reads the edges that are there.
    fn read_edges(&mut self, collector: &mut Collector) -> gpiocdev::Result<()> {
        let size = self.request.edge_event_u64_size();
        let mut buffer = vec![0; size * EDGES];
        // A read waits if there is no edge.
        if !self.request.has_edge_event()? {
            return Ok(());
        }
        let words = self.request.read_edge_events_into_slice(&mut buffer)?;
        for event in buffer[..words].chunks_exact(size) {
            let event = self.request.edge_event_from_slice(event)?;
            let missed = event.line_seqno.wrapping_sub(self.last_edge).saturating_sub(1);
            self.last_edge = event.line_seqno;
            if missed > 0 {
                self.put_held(collector);
                self.intake.counts.dropped += u64::from(missed);
                let text = format!("weir: {missed} records of {} dropped by the kernel", self.intake.name);
                collector.put_loss(&text);
                collector.messages.push(text);
            }
            let value = if event.kind == EdgeKind::Rising { Value::Active } else { Value::Inactive };
            let wall = UNIX_EPOCH + Duration::from_nanos(event.timestamp_ns);
            self.held.push_back((value, Receipt::at(wall)));
        }
        Ok(())
    }

    /// Reads the value, which is a change if it differs from that of the last record.
    fn poll(&mut self) -> gpiocdev::Result<()> {
        let value = self.request.value(self.spec.line)?;
        if self.value != Some(value) {
            self.value = Some(value);
            self.held.push_back((value, Receipt::now()));
        }
        Ok(())
    }

    /// Appends the changes to the log, with their times.
    fn put_held(&mut self, collector: &mut Collector) {
        let time = collector.time;
        while let Some((value, receipt)) = self.held.pop_front() {
            let text: &[u8] = if value == Value::Active { b"1" } else { b"0" };
            collector.time = receipt;
            if collector.put_record(&mut self.intake, text, None).is_err() {
                self.held.push_front((value, receipt));
                break;
            }
        }
        collector.time = time;
    }

    fn end_with(&mut self, error: &gpiocdev::Error, collector: &mut Collector) {
        collector.messages.push(format!(
            "gpio {}: {}: the source ends here",
            self.intake.name,
            named_errno(&error.to_string())
        ));
        self.ended = true;
    }

    fn progress(&self) -> SourceProgress {
        if self.ended && self.held.is_empty() { SourceProgress::Ended } else { SourceProgress::Open }
    }
}

impl Source for GpioSource {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.spec.poll.is_none().then(|| self.request.as_fd())
    }

    /// While changes are held, the kernel keeps the next ones.
    fn wants_poll(&self) -> bool {
        !self.ended && self.held.is_empty()
    }

    fn read(&mut self, collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        if let Err(error) = self.read_edges(collector) {
            self.end_with(&error, collector);
        }
        self.put_held(collector);
        self.progress()
    }

    fn resume(&mut self, collector: &mut Collector) -> SourceProgress {
        self.put_held(collector);
        self.progress()
    }

    fn deadline(&self, _options: &LogOptions) -> Option<Instant> {
        self.next_poll.filter(|_| !self.ended)
    }

    fn on_time(&mut self, now: Instant, collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) {
        let (Some(next), Some(interval)) = (self.next_poll, self.spec.poll) else { return };
        if now < next || self.ended {
            return;
        }
        self.next_poll = Some((next + interval).max(now));
        if self.held.is_empty()
            && let Err(error) = self.poll()
        {
            self.end_with(&error, collector);
        }
        self.put_held(collector);
    }

    fn begin_end(&mut self) {
        self.ended = true;
    }

    fn finish(&mut self, collector: &mut Collector) -> SourceProgress {
        self.ended = true;
        self.put_held(collector);
        self.progress()
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}

/// Returns the text of an error of the GPIO library with the name of its errno, as the other messages have it.
fn named_errno(text: &str) -> String {
    let number = text.split_once(" (os error ").and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
    number.map_or_else(
        || text.into(),
        |number| weir_sys::errno_text(&std::io::Error::from_raw_os_error(number)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let spec: GpioSpec = "0:17,pull-up,falling,active-low,debounce=5ms".parse().expect("a line");
        assert_eq!((spec.chip, spec.line), ("/dev/gpiochip0".into(), 17));
        assert_eq!((spec.bias, spec.edges), (Some(Bias::PullUp), Some(EdgeDetection::FallingEdge)));
        assert_eq!((spec.active_low, spec.debounce), (true, Some(Duration::from_millis(5))));
        let spec: GpioSpec = "/dev/gpiochip1:3,poll=50ms".parse().expect("a line");
        assert_eq!((spec.chip, spec.poll), ("/dev/gpiochip1".into(), Some(Duration::from_millis(50))));
        for text in ["", "0", ":1", "0:x", "0:1,up", "0:1,poll", "0:1,poll=5ms,rising", "0:1,pull-up=1"] {
            assert!(text.parse::<GpioSpec>().is_err(), "{text}");
        }
    }
}
