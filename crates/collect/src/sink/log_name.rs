//! The names of finished logs: LOG.20261124T164501.000123Z.safe, then the suffix of the compression. They sort by time.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::SystemTime;

use jiff::Timestamp;

/// The durability of a finished log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// The file was synced before it got this name.
    Safe,
    /// It was not synced yet, or the sync failed.
    Unfinished,
}

impl Finish {
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Finish::Safe => "safe",
            Finish::Unfinished => "unfinished",
        }
    }
}

/// The suffix of a compressed log that is not complete.
pub(super) const PARTIAL: &str = ".partial";

/// The length of a stamp: 20261124T164501.000123Z.
const STAMP: usize = 23;

/// Gives every finished log a later stamp than the one before, also when the clock is set back.
#[derive(Debug, Default)]
pub(super) struct StampSource(i64);

impl StampSource {
    /// Makes the next stamps later than `stamp`.
    pub(super) fn skip_to(&mut self, stamp: &str) {
        if let Some(micros) = parse_stamp(stamp) {
            self.0 = self.0.max(micros);
        }
    }

    pub(super) fn next(&mut self) -> String {
        let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::MAX).as_microsecond();
        self.0 = now.max(self.0 + 1);
        format_stamp(self.0)
    }
}

fn format_stamp(micros: i64) -> String {
    let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    time.strftime("%Y%m%dT%H%M%S.%6fZ").to_string()
}

fn parse_stamp(stamp: &str) -> Option<i64> {
    let time = Timestamp::strptime("%Y%m%dT%H%M%S%.f%z", stamp.replace('Z', "+0000")).ok()?;
    Some(time.as_microsecond())
}

/// The parts of a finished log's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FinishedName<'a> {
    pub(super) stamp: &'a str,
    pub(super) finish: Finish,
    pub(super) compressed: bool,
}

/// Returns the parts of `name`, if it is a finished log of `log`.
pub(super) fn parse<'a>(log: &OsStr, name: &'a OsStr) -> Option<FinishedName<'a>> {
    let rest = name.as_bytes().strip_prefix(log.as_bytes())?.strip_prefix(b".")?;
    let rest = std::str::from_utf8(rest).ok()?;
    let (stamp, rest) = (rest.get(..STAMP)?, rest.get(STAMP..)?.strip_prefix('.')?);
    parse_stamp(stamp)?;
    let (finish, compressed) = match rest {
        "safe" => (Finish::Safe, false),
        "unfinished" => (Finish::Unfinished, false),
        "safe.zst" | "safe.gz" => (Finish::Safe, true),
        _ => return None,
    };
    Some(FinishedName { stamp, finish, compressed })
}

/// Returns whether `name` is the name of a rotated log, of a part of its compressed form, or of the next log.
pub(crate) fn is_rotated_name(log: &OsStr, name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let whole = bytes.strip_suffix(PARTIAL.as_bytes()).map_or(name, OsStr::from_bytes);
    parse(log, whole).is_some() || bytes == [b".", log.as_bytes(), b".next"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised() {
        let name = |name: &'static str| parse(OsStr::new("out.log"), OsStr::new(name));
        let stamp = "20261124T164501.000123Z";
        let safe = FinishedName { stamp, finish: Finish::Safe, compressed: false };
        assert_eq!(name("out.log.20261124T164501.000123Z.safe"), Some(safe));
        let packed = FinishedName { stamp, finish: Finish::Safe, compressed: true };
        assert_eq!(name("out.log.20261124T164501.000123Z.safe.zst"), Some(packed));
        assert_eq!(
            name("out.log.20261124T164501.000123Z.unfinished").map(|name| name.finish),
            Some(Finish::Unfinished)
        );
        for other in [
            "out.log",
            "out.log.1",
            "out.log.20261124T164501.000123Z",
            "x.20261124T164501.000123Z.safe",
            "out.log.99991399T164501.000123Z.safe",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn stamps_rise_although_the_clock_is_set_back() {
        let mut source = StampSource::default();
        let first = source.next();
        source.skip_to("20991231T235959.999999Z");
        let (second, third) = (source.next(), source.next());
        assert_eq!(second, "21000101T000000.000000Z");
        assert!(first < second && second < third, "{first} {second} {third}");
    }
}
