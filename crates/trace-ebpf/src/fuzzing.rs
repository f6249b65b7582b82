//! Entry points of fuzz/ into the readers of what the kernel hands over: its types, and events with data of processes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use weir_trace_api::EventSink;

use crate::decode::Decoder;
use crate::kernel_types::KernelTypes;
use crate::ring_buffer::RingBuffer;
use crate::shared_types::{EventHead, KIND_COUNTERS, read};

/// Reads the kernel's types from a text of BTF.
pub fn kernel_types(bytes: &[u8]) {
    if let Some(types) = KernelTypes::parse(bytes, &["sys_enter", "sched_process_exit"]) {
        assert!(types.tracepoint("sys_enter").is_none_or(|(number, _)| number as usize <= bytes.len()));
    }
}

/// Decodes events, each after its length in one byte of 16 bytes each.
pub fn events(mut bytes: &[u8], sink: &mut EventSink) {
    let mut decoder = Decoder::default();
    while let Some((&length, rest)) = bytes.split_first() {
        let (event, rest) = rest.split_at(rest.len().min(16 * usize::from(length)));
        let mut event = event.to_vec();
        if read::<EventHead>(&event).is_some_and(|head| head.kind == KIND_COUNTERS) {
            // The BPF programs count calls and moved bytes; no process reaches numbers that need these two bytes.
            event.as_chunks_mut().0.iter_mut().skip(3).for_each(|[.., high, highest]: &mut [u8; 8]| {
                (*high, *highest) = (0, 0);
            });
        }
        let _change = decoder.decode(&event, sink);
        let _exit = crate::decode::exit_event(&event, Default::default());
        bytes = rest;
    }
}

/// Reads a ring of one page that contains these bytes, up to a position of the producer.
pub fn ring(bytes: &[u8], produced: u16) -> std::io::Result<()> {
    let page = rustix::param::page_size();
    let file = File::from(rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.set_len(4 * page as u64)?;
    for copy in [2, 3] {
        file.write_all_at(&bytes[..bytes.len().min(page)], (copy * page) as u64)?;
    }
    file.write_all_at(&u64::from(produced).to_ne_bytes(), page as u64)?;
    let mut ring = RingBuffer::new(file.into(), page)?;
    let mut batch = Vec::new();
    for _ in 0..64 {
        let before = batch.len();
        ring.take(&mut batch, before);
    }
    Ok(())
}
