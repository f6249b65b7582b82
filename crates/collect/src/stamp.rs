//! Time stamps of records.

use std::fmt::Write as _;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::time::{ClockId, clock_gettime};

/// How the time of a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Local time in seconds: 2025-07-22T10:30:00.
    Iso,
    /// Local time in milliseconds with the offset from UTC: 2025-07-22T10:30:00.125+02:00.
    IsoMs,
    /// Seconds since 1970 in UTC, with microseconds.
    Epoch,
    /// The 25 characters of the TAI64N label, as multilog and s6-log write them.
    Tai64n,
    /// Seconds since the boot, with microseconds: CLOCK_BOOTTIME, which clock steps do not change.
    Mono,
}

impl FromStr for Stamp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "iso" => Ok(Stamp::Iso),
            "iso-ms" => Ok(Stamp::IsoMs),
            "epoch" => Ok(Stamp::Epoch),
            "tai64n" => Ok(Stamp::Tai64n),
            "mono" => Ok(Stamp::Mono),
            _ => Err(format!("'{text}' is not a time stamp: use iso, iso-ms, epoch, tai64n or mono")),
        }
    }
}

/// TAI64 labels count from 2^62, and begin 10 seconds before UTC: leap seconds are not counted, as in s6-log.
const TAI64_EPOCH: u64 = (1 << 62) + 10;

/// The time at which a record was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    pub(crate) wall: SystemTime,
    since_boot: Duration,
}

impl Receipt {
    pub(crate) fn now() -> Self {
        let boot = clock_gettime(ClockId::Boottime);
        let since_boot =
            Duration::new(u64::try_from(boot.tv_sec).unwrap_or(0), u32::try_from(boot.tv_nsec).unwrap_or(0));
        Self { wall: SystemTime::now(), since_boot }
    }

    /// Returns the receipt of something that happened at this time.
    pub(crate) fn at(wall: SystemTime) -> Self {
        let now = Self::now();
        let ago = now.wall.duration_since(wall).unwrap_or_default();
        Self { wall, since_boot: now.since_boot.saturating_sub(ago) }
    }

    fn since_epoch(self) -> Duration {
        self.wall.duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// Writes stamps. Keeps the text of the current second, because most records share it.
#[derive(Debug)]
pub(crate) struct StampWriter {
    stamp: Stamp,
    zone: TimeZone,
    second: Option<u64>,
    date: String,
    offset: String,
}

impl StampWriter {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self { stamp, zone: TimeZone::system(), second: None, date: String::new(), offset: String::new() }
    }

    /// Appends the stamp of `time` to `out`.
    pub(crate) fn write(&mut self, time: Receipt, out: &mut Vec<u8>) {
        let epoch = time.since_epoch();
        let text = match self.stamp {
            Stamp::Iso => {
                self.set_second(epoch);
                out.extend_from_slice(self.date.as_bytes());
                return;
            }
            Stamp::IsoMs => {
                self.set_second(epoch);
                format!("{}.{:03}{}", self.date, epoch.subsec_millis(), self.offset)
            }
            Stamp::Epoch => format!("{}.{:06}", epoch.as_secs(), epoch.subsec_micros()),
            Stamp::Mono => format!("{}.{:06}", time.since_boot.as_secs(), time.since_boot.subsec_micros()),
            Stamp::Tai64n => format!("@{:016x}{:08x}", TAI64_EPOCH + epoch.as_secs(), epoch.subsec_nanos()),
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn set_second(&mut self, epoch: Duration) {
        if self.second == Some(epoch.as_secs()) {
            return;
        }
        self.second = Some(epoch.as_secs());
        let seconds = i64::try_from(epoch.as_secs()).unwrap_or(i64::MAX);
        let time =
            Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_zoned_datetime(self.zone.clone());
        self.date.clear();
        self.offset.clear();
        let _ = write!(self.date, "{}", time.strftime("%Y-%m-%dT%H:%M:%S"));
        let _ = write!(self.offset, "{}", time.strftime("%:z"));
    }
}

/// Returns a time in UTC with microseconds, for JSON: 2025-07-22T08:30:00.125000Z.
pub(crate) fn utc_text(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(stamp: Stamp, zone: TimeZone) -> String {
        let wall = UNIX_EPOCH + Duration::new(1_753_173_000, 125_000_789);
        let mut out = Vec::new();
        let mut writer = StampWriter { zone, ..StampWriter::new(stamp) };
        writer.write(Receipt { wall, since_boot: Duration::new(7, 42_000) }, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn stamps_have_their_forms() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(text(Stamp::Iso, zone.clone()), "2025-07-22T10:30:00");
        assert_eq!(text(Stamp::IsoMs, zone), "2025-07-22T10:30:00.125+02:00");
        assert_eq!(text(Stamp::Epoch, TimeZone::UTC), "1753173000.125000");
        assert_eq!(text(Stamp::Mono, TimeZone::UTC), "7.000042");
        assert_eq!(text(Stamp::Tai64n, TimeZone::UTC), "@40000000687f4c1207735c55");
        assert_eq!("iso-ms".parse(), Ok(Stamp::IsoMs));
        assert!("rfc".parse::<Stamp>().is_err());
    }

    #[test]
    fn a_new_second_has_its_own_date() {
        let mut writer = StampWriter { zone: TimeZone::UTC, ..StampWriter::new(Stamp::Iso) };
        let mut out = Vec::new();
        for second in [59, 60, 59] {
            let wall = UNIX_EPOCH + Duration::from_secs(second);
            writer.write(Receipt { wall, since_boot: Duration::ZERO }, &mut out);
        }
        assert_eq!(out, b"1970-01-01T00:00:591970-01-01T00:01:001970-01-01T00:00:59");
        assert_eq!(utc_text(UNIX_EPOCH + Duration::from_micros(5)), "1970-01-01T00:00:00.000005Z");
    }
}
