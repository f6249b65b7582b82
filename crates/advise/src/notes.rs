//! Sentences below the choices: the duties of the program, and the limits of the figures.

use weir_model::Size;
use weir_model::advise::{
    AdviceHost, AdviceLanguage, AdvicePrices, AdviceQuestion, AllowedLoss, Medium, SyncPoint,
};
use weir_model::duration::format_seconds;
use weir_model::number::about_bytes;

use crate::predict::{ASSUMED_SYNC_BYTES, FLASH_PAGE_BYTES};
use crate::rank::Judged;

/// The begin of the sentence which warns that the prices come from another medium.
pub const MEDIUM_DIFFERS: &str = "The prices are those of";
/// For a log that grows faster a note recommends rotation: in a year it would fill a card of 8 GB.
const ROTATE_BYTES_PER_DAY: f64 = 20e6;
/// Ratio of the longest to the shortest sync above which the screen says that they vary. A predicted time may have the same error.
const SYNC_VARIES: f64 = 1.5;
const DAY_S: f64 = 86_400.0;
/// A write(2) into the page cache takes microseconds. One that takes longer waits for a device, as on a file system that is mounted with
/// `sync`; less is measured there.
const SLOW_WRITE_NS: f64 = 300_000.0;

/// Returns the assumptions behind the figures and their limits.
pub fn assumptions(question: &AdviceQuestion, host: &AdviceHost, prices: &AdvicePrices) -> Vec<String> {
    let mut all = Vec::new();
    if question.medium != host.medium {
        all.push(format!(
            "{MEDIUM_DIFFERS} {} ({}, {}), not of {}. A sync there usually takes longer: run weir advise --dir on it.",
            question.dir,
            host.fs,
            host.medium.text(),
            question.medium.text(),
        ));
    }
    if question.medium.wears() {
        let sync = match prices.sync_device_bytes {
            Some(bytes) => {
                format!("One sync writes {} to the device, measured here", Size(bytes.round() as u64))
            }
            None => format!("Assumed: one sync writes {} to the device", Size(ASSUMED_SYNC_BYTES as u64)),
        };
        let page = match question.medium.is_small_flash() {
            true => format!("; assumed: the medium programs pages of {}", Size(FLASH_PAGE_BYTES as u64)),
            false => "; assumed: the medium programs pages of 4 KiB".into(),
        };
        all.push(format!("{sync}{page}. Copies that the medium makes internally are not included."));
    }
    if let Some(ns) = prices.write.first().map(|one| one.price.elapsed_ns).filter(|ns| *ns > SLOW_WRITE_NS) {
        all.push(format!(
            "One write(2) takes {} in {}, so the measurement was cut to fewer and shorter samples: the prices are rough.",
            format_seconds(ns / 1e9),
            question.dir
        ));
    }
    all.extend(sync_range(prices));
    all.extend(timed_in_c(question.lang));
    if host.medium != Medium::Ram {
        all.push(format!(
            "Without a sync, written bytes stay in the page cache for up to {} (vm.dirty_expire_centisecs and vm.dirty_writeback_centisecs).",
            format_seconds(host.writeback_s)
        ));
    }
    all.push("Assumed: the rate is constant. A burst can fill a buffer faster than the figures say.".into());
    all
}

/// Returns the sentence about calls that were timed in another language than the program's.
fn timed_in_c(lang: AdviceLanguage) -> Option<String> {
    match lang {
        AdviceLanguage::C | AdviceLanguage::Cpp => None,
        AdviceLanguage::Rust => Some(
            "The calls were timed in C. Those of Rust's standard library can take more or less time.".into(),
        ),
        _ => Some(format!(
            "The calls were timed in C. In {} the interpreter's or runtime's own time is not included.",
            lang.text()
        )),
    }
}

/// Returns the sentence about syncs whose time varies: by more than a half above the price.
fn sync_range(prices: &AdvicePrices) -> Option<String> {
    let ([low, high], now) = (prices.fdatasync_range_ns?, prices.fdatasync?.elapsed_ns);
    let seconds = |ns: f64| format_seconds(ns / 1e9);
    (high > low * SYNC_VARIES).then(|| {
        format!(
            "A short fdatasync(2) took {} to {} here, now {}: it depends on what other programs do. The times of ways with syncs \
             vary as much.",
            seconds(low),
            seconds(high),
            seconds(now)
        )
    })
}

/// Returns what the program must do if it uses the first choice.
pub fn notes(question: &AdviceQuestion, prices: &AdvicePrices, first: &Judged) -> Vec<String> {
    let policy = &first.policy;
    let mut all: Vec<String> = Vec::new();
    if let Some(device) = prices.device_bytes_per_s.filter(|device| question.bytes_per_s() > *device) {
        all.push(format!(
            "{} a second is more than the device takes ({} a second): the page cache fills, then writers wait.",
            about_bytes(question.bytes_per_s()),
            about_bytes(device)
        ));
    }
    if policy.gathers() {
        all.push("Flush before fork(2), or both processes write the buffer. Flush before execve(2) and _exit(2), or it is lost.".into());
    } else {
        all.push("fork(2), execve(2) and _exit(2) need no flush: no bytes are pending.".into());
    }
    if question.sharers > 1 {
        all.push("Open the file with O_APPEND and write whole records with one call each, as the code does; otherwise writers overwrite or tear each other's records.".into());
    }
    let day = question.bytes_per_s() * DAY_S;
    if day >= ROTATE_BYTES_PER_DAY {
        all.push(format!(
            "The file grows by {} a day. To rotate, rename it and open a new one between two records, or let weir log --rotate do it.",
            about_bytes(day)
        ));
    }
    match policy.sync {
        SyncPoint::None if question.loss == AllowedLoss::Buffer => {
            all.push("If the finished file must survive a power cut, call fsync(2) before close(2), and once on its directory.".into());
        }
        SyncPoint::None => {}
        _ => all.push(
            "A new file needs one fsync(2) of its directory, as in the code; otherwise its name is lost."
                .into(),
        ),
    }
    if question.loss != AllowedLoss::None {
        all.push(
            "After a power cut the file may end with a torn record or with NULs: readers must skip both."
                .into(),
        );
    }
    all.push(
        "Check the result of every write, flush and close: a full disk is reported there and nowhere else."
            .into(),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise;
    use crate::fixture::{host, prices, question};

    #[test]
    fn what_was_not_measured_is_said() {
        let card = AdviceQuestion { medium: Medium::Sd, ..question() };
        let document = advise(&card, &host(), &prices(), None);
        assert!(document.assumptions[0].starts_with(MEDIUM_DIFFERS), "{:?}", document.assumptions);
        assert!(
            document.assumptions[1].contains("measured here") && document.assumptions[1].contains("assumed")
        );
        let unknown = AdvicePrices { sync_device_bytes: None, ..prices() };
        assert!(assumptions(&card, &host(), &unknown)[1].starts_with("Assumed: one sync writes 16 KiB"));
        assert!(
            assumptions(&question(), &host(), &prices()).iter().all(|text| !text.starts_with(MEDIUM_DIFFERS))
        );
    }

    #[test]
    fn rust_has_no_interpreter() {
        let of = |lang| assumptions(&AdviceQuestion { lang, ..question() }, &host(), &prices()).concat();
        assert!(of(AdviceLanguage::Rust).contains("Rust's standard library"));
        assert!(
            !of(AdviceLanguage::Rust).contains("interpreter")
                && !of(AdviceLanguage::C).contains("timed in C")
        );
        assert!(of(AdviceLanguage::Python).contains("the interpreter's or runtime's own time"));
    }

    #[test]
    fn a_cut_measurement_is_named_as_such() {
        let cut = |prices| {
            assumptions(&question(), &host(), &prices).iter().any(|text| text.contains("was cut to"))
        };
        let mut slow = prices();
        slow.write[0].price.elapsed_ns = 1e6;
        assert!(!cut(prices()) && cut(slow));
    }

    #[test]
    fn syncs_that_vary_are_named_as_such() {
        let text = |range| {
            let prices = AdvicePrices { fdatasync_range_ns: range, ..prices() };
            assumptions(&question(), &host(), &prices)
                .into_iter()
                .find(|text| text.contains("fdatasync(2) took"))
        };
        assert!(
            text(Some([250_000.0, 3_000_000.0])).unwrap().contains("took 250 µs to 3.00 ms here, now 600 µs")
        );
        assert_eq!(text(Some([590_000.0, 610_000.0])), None);
        assert_eq!(text(None), None);
    }

    #[test]
    fn a_log_that_grows_needs_rotation() {
        let rotates = |rate: f64| {
            let document = advise(&AdviceQuestion { rate, ..question() }, &host(), &prices(), None);
            document.notes.iter().any(|note| note.contains("--rotate"))
        };
        assert!(rotates(1000.0) && !rotates(0.1));
    }

    #[test]
    fn a_device_that_is_too_slow_is_named() {
        let bulk = AdviceQuestion { rate: 1e7, latency_s: 60.0, ..question() };
        let document = advise(&bulk, &host(), &prices(), None);
        assert!(document.notes[0].contains("more than the device takes"), "{:?}", document.notes);
    }
}
