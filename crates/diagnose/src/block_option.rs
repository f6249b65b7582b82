//! Programs whose block size is an option. A finding about their calls names the option, but only if the arguments and the
//! observed size of the calls agree, so that the option is certain to set that size.

use weir_model::Direction;
use weir_model::Untrusted;
use weir_model::trace::{Image, StreamCounts};

use crate::context::RuleContext;
use crate::tool_options::{applet, program_name};

/// The size of a block of tar(1) and cpio(1), in which their options count.
const TAPE_BLOCK: u64 = 512;

impl RuleContext<'_> {
    /// Returns the option that gives a stream larger calls, as an instruction without a full stop. Returns None if it is not
    /// certain that an option of the program sets the size of these calls.
    pub fn block_option(&self, stream: &StreamCounts) -> Option<String> {
        let (_, image) = self.image_at(stream.pid, stream.first_s)?;
        let size = exact_size(stream)?;
        let argv: Vec<&str> = image.argv.iter().map(Untrusted::exact).collect();
        match program(image)? {
            "dd" => dd(&argv, size),
            "tar" => tar(&argv, size),
            "cpio" => cpio(&argv, stream, size),
            _ => None,
        }
    }

    /// Returns whether a program writes blocks of a size that is an option of it: full blocks are its purpose.
    pub fn writes_blocks_by_option(&self, pid: u32, at_s: f64) -> bool {
        let program = self.image_at(pid, at_s).and_then(|(_, image)| called_program(image));
        program.is_some_and(|name| BLOCK_PROGRAMS.contains(&name))
    }
}

/// Programs that copy their input in blocks, and whose option sets the size: bs= and obs= of dd, -b of tar, -C of cpio, -s of
/// buffer and mbuffer.
const BLOCK_PROGRAMS: [&str; 8] = ["dd", "tar", "bsdtar", "star", "cpio", "pax", "buffer", "mbuffer"];

/// Returns the name by which a program was called, if the kernel's name of the process agrees: also that of a program in busybox.
fn called_program(image: &Image) -> Option<&str> {
    let called = image.argv.first()?.exact().rsplit('/').next()?;
    (image.comm == *called).then_some(called)
}

/// Returns the name of a program that was executed under its own name. Of the programs of busybox only dd has the same options.
fn program(image: &Image) -> Option<&str> {
    if let Some(name) = applet(image) {
        return Some(name).filter(|name| *name == "dd");
    }
    let file = program_name(image);
    (file == image.comm && !image.argv.is_empty()).then_some(file)
}

/// Returns the size of a stream's calls if nearly all have the same. The last call may be shorter.
fn exact_size(stream: &StreamCounts) -> Option<u64> {
    let size = stream.max_requested_bytes;
    let calls = stream.bytes.div_ceil(size.max(1));
    let moving = stream.moving_calls();
    (size > 0 && moving.abs_diff(calls) * 100 <= moving).then_some(size)
}

/// Parses a number of dd's arguments: digits with one of the suffixes of a power of 1024.
fn dd_bytes(text: &str) -> Option<u64> {
    let (digits, factor) = match text.trim_end_matches("iB").strip_suffix(['c', 'w', 'b', 'k', 'K', 'M', 'G'])
    {
        None => (text, 1),
        Some(digits) => {
            let factor = match text.as_bytes()[digits.len()] {
                b'c' => 1,
                b'w' => 2,
                b'b' => TAPE_BLOCK,
                b'k' | b'K' => 1 << 10,
                b'M' => 1 << 20,
                _ => 1 << 30,
            };
            (digits, factor)
        }
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn dd(argv: &[&str], size: u64) -> Option<String> {
    let operand = |name: &str| argv.iter().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    if operand("ibs").or(operand("obs")).or(operand("cbs")).is_some() {
        return None;
    }
    let used = operand("bs").map_or(Some(TAPE_BLOCK), dd_bytes)?;
    if used != size {
        return None;
    }
    let counted: Vec<&str> =
        ["count", "skip", "seek"].into_iter().filter(|name| operand(name).is_some()).collect();
    let blocks = match &counted[..] {
        [] => String::new(),
        names => format!(" ({} counts blocks: adapt it)", names.join("=, ") + "="),
    };
    Some(format!(
        "dd with bs=64K instead of {}{blocks}",
        operand("bs").map_or("512".into(), |bs| format!("bs={}", Untrusted::from(bs)))
    ))
}

fn tar(argv: &[&str], size: u64) -> Option<String> {
    let long = |word: &str| word.strip_prefix("--blocking-factor=").map(str::to_string);
    let short = |word: &str| word.strip_prefix("-b").map(str::to_string);
    let attached = argv
        .iter()
        .skip(1)
        .find_map(|word| long(word).or_else(|| short(word)))
        .filter(|text| !text.is_empty());
    let separate = || {
        let at = argv.iter().position(|word| *word == "-b" || *word == "--blocking-factor")?;
        argv.get(at + 1).map(|word| word.to_string())
    };
    let factor: u64 = attached.or_else(separate)?.parse().ok()?;
    (factor.checked_mul(TAPE_BLOCK)? == size).then(|| "tar with -b 128, for blocks of 64 KiB".into())
}

/// The options of cpio(1) set the size of the archive's blocks: what it writes with -o and reads with -i.
fn cpio(argv: &[&str], stream: &StreamCounts, size: u64) -> Option<String> {
    let is_flag = |word: &str, flag: char| {
        word.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-') && flags.contains(flag))
    };
    let has = |flag: char, long: &str| argv.iter().skip(1).any(|word| is_flag(word, flag) || *word == long);
    let archive = match stream.direction {
        Direction::Out => has('o', "--create") && stream.fd == 1,
        _ => has('i', "--extract") && stream.fd == 0,
    };
    let sized = ["-C", "--io-size", "--block-size", "-B"];
    let is_sized = argv.iter().any(|word| sized.iter().any(|option| word.starts_with(option)));
    (archive && !is_sized && !has('B', "-B") && !has('C', "-C") && size == TAPE_BLOCK)
        .then(|| "cpio with -C 65536, for blocks of 64 KiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split(' ').collect()
    }

    #[test]
    fn dd_is_told_its_operand_if_it_has_the_observed_size() {
        let told = dd(&words("dd if=/dev/zero of=o bs=512 count=400000"), 512).unwrap();
        assert_eq!(told, "dd with bs=64K instead of bs=512 (count= counts blocks: adapt it)");
        assert_eq!(dd(&words("dd if=a of=b"), 512).unwrap(), "dd with bs=64K instead of 512");
        assert_eq!(dd(&words("dd if=a of=b bs=1k"), 1024).unwrap(), "dd with bs=64K instead of bs=1k");
        assert_eq!(dd(&words("dd if=a of=b bs=1k"), 512), None, "the calls have another size");
        assert_eq!(dd(&words("dd if=a of=b ibs=512 obs=4k"), 512), None);
        assert_eq!(dd(&words("dd bs=2x512"), 1024), None, "not parsed");
    }

    #[test]
    fn tar_is_told_its_blocking_factor() {
        for line in ["tar -b1 -cf a d", "tar -c -b 1 -f a d", "tar --blocking-factor=1 -cf a d"] {
            assert!(tar(&words(line), 512).unwrap().contains("-b 128"), "{line}");
        }
        assert_eq!(tar(&words("tar -cf a d"), 10_240), None, "its default");
        assert_eq!(tar(&words("tar -b1 -cf a d"), 1024), None, "its calls on the files");
    }

    #[test]
    fn cpio_is_told_of_the_archive_only() {
        let stream = |fd, direction| StreamCounts::new(1, 0, fd, 0, direction);
        let told = cpio(&words("cpio -o"), &stream(1, Direction::Out), 512).unwrap();
        assert!(told.contains("-C 65536"));
        assert_eq!(cpio(&words("cpio -o"), &stream(3, Direction::In), 512), None, "the archived files");
        assert_eq!(cpio(&words("cpio -oB"), &stream(1, Direction::Out), 5120), None);
        assert!(cpio(&words("cpio -i"), &stream(0, Direction::In), 512).is_some());
    }
}
