//! Completes a store that the kill interrupted. putc(3), OCaml's output_char and libc++'s sputc count a byte one instruction before
//! they store it, so a thread that is killed between both has counted a byte that the buffer lacks.

use weir_model::trace::RuntimeId;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_walkers::{GLIBC_WRITE_POINTER, PendingBytes};

use super::killed_thread::KilledThread;

/// The offset of `_IO_write_ptr` in glibc's FILE; that of `wpos` in musl's is equal.
const WRITE_POINTER: u64 = GLIBC_WRITE_POINTER as u64;

/// Replaces the last pending byte by the byte that one of the killed threads was about to store there.
pub(super) fn complete(tid: u32, threads: &[KilledThread], pending: &mut PendingBytes) {
    let memory = ProcessMemory { pid: tid };
    let write_pointer = match (pending.walker, pending.note) {
        (RuntimeId::GLIBC | RuntimeId::MUSL, _) => memory.u64(pending.stream + WRITE_POINTER),
        (RuntimeId::OCAML | RuntimeId::CPP, Some(note)) => memory.u64(note.address),
        _ => return,
    };
    for (address, byte) in threads.iter().filter_map(|thread| decode_store(&memory, thread)) {
        let is_last = write_pointer == address.checked_add(1);
        if let Some(last) = pending.bytes.last_mut().filter(|_| is_last) {
            *last = byte;
        }
    }
}

/// Decodes the next instruction if it is `mov %r8, (…)` or `movb $…, (…)`. Returns its address and byte.
fn decode_store(memory: &ProcessMemory, thread: &KilledThread) -> Option<(u64, u8)> {
    let code = memory.bytes(thread.instruction_pointer(), 15);
    let (rex, rest) = match *code.first()? {
        rex @ 0x40..=0x4f => (rex, &code[1..]),
        _ => (0, &code[..]),
    };
    let (&[opcode, modrm], rest) = rest.split_first_chunk()?;
    let (address, rest) = decode_address(thread, rex, modrm, rest)?;
    let register = modrm >> 3 & 7;
    match opcode {
        // Without a REX prefix, the numbers 4 to 7 are the second bytes of the first four registers.
        0x88 if rex == 0 && register >= 4 => Some((address, (thread.register(register - 4) >> 8) as u8)),
        0x88 => Some((address, thread.register(extended(register, rex, 4)) as u8)),
        0xc6 if register == 0 => Some((address, *rest.first()?)),
        _ => None,
    }
}

/// Decodes the memory operand of a ModRM byte, and returns its address and the code after it.
fn decode_address<'c>(
    thread: &KilledThread,
    rex: u8,
    modrm: u8,
    mut code: &'c [u8],
) -> Option<(u64, &'c [u8])> {
    let (mode, base) = (modrm >> 6, modrm & 7);
    let mut address = match base {
        _ if mode == 3 || mode == 0 && base == 5 => return None,
        4 => {
            let (&sib, rest) = code.split_first()?;
            code = rest;
            let index = sib >> 3 & 7;
            let has_index = index != 4 || rex & 2 != 0;
            let scaled = if has_index { thread.register(extended(index, rex, 2)) << (sib >> 6) } else { 0 };
            if mode == 0 && sib & 7 == 5 {
                return None;
            }
            thread.register(extended(sib & 7, rex, 1)).wrapping_add(scaled)
        }
        _ => thread.register(extended(base, rex, 1)),
    };
    if mode == 1 {
        address = address.wrapping_add_signed(i64::from(*code.first()? as i8));
        code = &code[1..];
    } else if mode == 2 {
        address = address.wrapping_add_signed(i64::from(i32::from_le_bytes(*code.first_chunk()?)));
        code = &code[4..];
    }
    Some((address, code))
}

/// Returns a register number with the bit that a REX prefix adds.
fn extended(number: u8, rex: u8, rex_bit: u8) -> u8 {
    number | if rex & rex_bit != 0 { 8 } else { 0 }
}
