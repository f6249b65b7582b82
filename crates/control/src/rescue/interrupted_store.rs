//! The byte that putc(3) was just storing: a stream counts it, and has it only one instruction later.

use weir_model::trace::RuntimeId;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_walkers::Pending;

use crate::rescue::replay::KilledThread;

/// `write_ptr` of glibc's FILE, and `wpos` of musl's.
const NEXT: u64 = 40;

/// Puts it into what a stream holds, if one of these threads was about to.
pub(crate) fn stored(tid: u32, torn: &[KilledThread], pending: &mut Pending) {
    if !matches!(pending.walker, RuntimeId::Glibc | RuntimeId::Musl) {
        return;
    }
    let memory = ProcessMemory { pid: tid };
    let next = memory.u64(pending.stream + NEXT);
    for (at, byte) in torn.iter().filter_map(|torn| about_to(&memory, torn)) {
        if let Some(last) = pending.bytes.last_mut().filter(|_| next == at.checked_add(1)) {
            *last = byte;
        }
    }
}

/// `mov %r8, (…)` or `movb $…, (…)`: where to, and which byte.
fn about_to(memory: &ProcessMemory, torn: &KilledThread) -> Option<(u64, u8)> {
    let code = memory.bytes(torn.at(), 15);
    let (rex, rest) = match *code.first()? {
        rex @ 0x40..=0x4f => (rex, &code[1..]),
        _ => (0, &code[..]),
    };
    let (&[operation, modes], mut rest) = rest.split_first_chunk()?;
    let general = |number: u8, more: u8| torn.general(number | if rex & more != 0 { 8 } else { 0 });
    let (mode, base) = (modes >> 6, modes & 7);
    let mut at = match base {
        _ if mode == 3 || mode == 0 && base == 5 => return None,
        4 => {
            let (&sib, behind) = rest.split_first()?;
            rest = behind;
            let index = sib >> 3 & 7;
            let none = index == 4 && rex & 2 == 0;
            let scaled = if none { 0 } else { general(index, 2) << (sib >> 6) };
            if mode == 0 && sib & 7 == 5 {
                return None;
            }
            general(sib & 7, 1).wrapping_add(scaled)
        }
        _ => general(base, 1),
    };
    if mode == 1 {
        at = at.wrapping_add_signed(i64::from(*rest.first()? as i8));
        rest = &rest[1..];
    } else if mode == 2 {
        at = at.wrapping_add_signed(i64::from(i32::from_le_bytes(*rest.first_chunk()?)));
        rest = &rest[4..];
    }
    let from = modes >> 3 & 7;
    match operation {
        // Without the prefix, numbers from 4 on are the second bytes of the first four registers.
        0x88 if rex == 0 && from >= 4 => Some((at, (general(from - 4, 0) >> 8) as u8)),
        0x88 => Some((at, general(from, 4) as u8)),
        0xc6 if from == 0 => Some((at, *rest.first()?)),
        _ => None,
    }
}
