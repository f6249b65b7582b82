//! The entry point of fuzz/ into the objects of CPython.

use weir_sys::memory::Memory;

use super::layout::PythonLayout;
use super::objects::{TextBudget, dict_get, module_dict, pending_bytes, text_from};
use super::streams::{self, IoType, IoTypes};
use crate::copied_memory::PENDING_KEPT;
use crate::fuzzing::BASE;

/// Reads objects of all io types at the beginning of the memory, as if the module `_io` had led to them.
pub(crate) fn objects(memory: &dyn Memory, layout: &PythonLayout, kind: u64) {
    let types = IoTypes::of_known(
        IoType::ALL.iter().zip(0..).map(|(of, index)| (kind.wrapping_add(8 * index), *of)).collect(),
    );
    let objects = (BASE..BASE + 1024).step_by(64);
    let found = streams::streams(memory, layout, &types, &mut objects.clone().collect(), PENDING_KEPT);
    assert!(found.iter().all(|one| one.buffer.pending.len() as u64 <= PENDING_KEPT));
    for at in objects {
        dict_get(memory, layout, at, &["_io"]);
        module_dict(memory, layout, at);
        text_from(memory, layout, at, kind, &TextBudget::default());
        pending_bytes(memory, layout, at, PENDING_KEPT, &TextBudget::default());
    }
}
