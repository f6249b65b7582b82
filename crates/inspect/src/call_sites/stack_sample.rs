//! Parses a sample of perf_event_open(2): time, registers and the top of the stack. The stack is the memory of
//! another process, so nothing in it is trusted.

/// PERF_SAMPLE_IP, _TID, _TIME, _REGS_USER, _STACK_USER.
pub(super) const TYPE: u64 = 1 | 2 | 4 | 1 << 12 | 1 << 13;

/// The register of a system call's first argument and those from which unwinding starts, by their numbers in perf_regs.h:
/// DI, BP, SP, IP; X0, X29, LR, SP, PC.
#[cfg(target_arch = "x86_64")]
pub(super) const REGISTERS: u64 = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
pub(super) const REGISTERS: u64 = 1 | 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("which registers are a function's frame and its caller?");

/// PERF_RECORD_SAMPLE.
const SAMPLE: u32 = 9;
/// PERF_SAMPLE_REGS_ABI_64.
const ABI_64: u64 = 2;

/// The registers at an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SampledRegisters {
    /// The first argument, if the event is the begin of a system call.
    pub argument: u64,
    pub ip: u64,
    pub sp: u64,
    pub fp: u64,
    /// Return address, on machines that keep it in a register (LR); otherwise 0.
    pub link: u64,
}

/// A stack at an event: a store into a watched word, or a system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StackSample {
    /// Time of the sample, in nanoseconds of CLOCK_MONOTONIC.
    pub ns: u64,
    pub registers: SampledRegisters,
    /// Copy of the stack, from `registers.sp` upwards.
    pub stack: Vec<u8>,
}

impl StackSample {
    /// Returns a word of the stack, or none if it was not copied.
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.registers.sp)?).ok()?;
        let bytes = self.stack.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

/// Parses a record of the ring. Returns none for other records and for 32-bit programs.
pub(super) fn parse(record: &[u8]) -> Option<StackSample> {
    let mut words =
        record.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let kind = words.next()? as u32;
    let [_ip, _thread, ns, abi] = next(&mut words)?;
    if kind != SAMPLE || abi != ABI_64 {
        return None;
    }
    let registers = registers(&mut words)?;
    let [stack_bytes] = next(&mut words)?;
    let begin = 8 * (6 + REGISTERS.count_ones() as usize);
    let stack = record.get(begin..begin.checked_add(usize::try_from(stack_bytes).ok()?)?)?;
    // After the stack follows the number of its valid bytes.
    let valid = record.get(begin + stack.len()..)?.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let stack = stack[..stack.len().min(usize::try_from(valid).ok()?)].to_vec();
    Some(StackSample { ns, registers, stack })
}

fn next<const COUNT: usize>(words: &mut impl Iterator<Item = u64>) -> Option<[u64; COUNT]> {
    let mut found = [0; COUNT];
    for word in &mut found {
        *word = words.next()?;
    }
    Some(found)
}

#[cfg(target_arch = "x86_64")]
fn registers(words: &mut impl Iterator<Item = u64>) -> Option<SampledRegisters> {
    let [argument, fp, sp, ip] = next(words)?;
    Some(SampledRegisters { argument, ip, sp, fp, link: 0 })
}

#[cfg(target_arch = "aarch64")]
fn registers(words: &mut impl Iterator<Item = u64>) -> Option<SampledRegisters> {
    let [argument, fp, link, sp, ip] = next(words)?;
    Some(SampledRegisters { argument, ip, sp, fp, link })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record with 16 bytes of stack, of which `valid` are valid.
    fn record(kind: u64, abi: u64, valid: u64) -> Vec<u8> {
        let registers: Vec<u64> = (0..u64::from(REGISTERS.count_ones())).map(|number| 100 + number).collect();
        let words = [vec![kind, 1, 2, 3, abi], registers, vec![16, 7, 8, valid]].concat();
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_sample_is_read_and_its_stack_by_address() {
        let sample = parse(&record(9, 2, 16)).expect("a sample");
        let sp = sample.registers.sp;
        let registers = sample.registers;
        assert_eq!((sample.ns, registers.argument, registers.fp, sample.stack.len()), (3, 100, 101, 16));
        assert_eq!([sp, sp + 8, sp + 9, sp - 1].map(|at| sample.word(at)), [Some(7), Some(8), None, None]);
        assert_eq!(parse(&record(9, 2, 8)).expect("a short stack").word(sp + 8), None);
    }

    #[test]
    fn truncated_and_32_bit_samples_are_rejected() {
        assert!(parse(&record(2, 2, 16)).is_none() && parse(&record(9, 1, 16)).is_none());
        let whole = record(9, 2, 16);
        assert!((0..whole.len() - 8).all(|bytes| parse(&whole[..bytes]).is_none()));
        assert!(parse(&record(9, 2, u64::MAX)).is_some_and(|sample| sample.stack.len() == 16));
    }
}
