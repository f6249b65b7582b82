//! The rules. A new one is a file here and a line in the list.

macro_rules! rules {
    ($($name:ident,)*) => {
        $(mod $name;)*
        /// Every rule.
        pub(crate) const ALL: &[Rule] = &[$($name::RULE,)*];
    };
}

rules! {
    tiny_writes, tiny_reads, line_buffered_bulk, stuck_output, lost_at_kill, lost_at_exec, lost_at_exit,
    doubled_at_fork, over_read, eaten_stdin, mixed_order, torn_records, shared_offset, sync_tiny_writes,
    sync_every_write, missing_sync_before_rename, missing_dir_sync, ignored_write_error, ignored_close_error,
    short_write_unhandled, direct_misaligned, double_buffered, could_copy_in_kernel, random_without_advice,
    small_pipe, seek_and_reread, read_after_eof_spin, unaligned_writes, terminal_bulk,
}

pub(crate) use tiny_writes::TINY;

use weir_model::{Finding, FindingId};

use crate::context::Context;

/// One kind of finding and how it is judged.
pub(crate) struct Rule {
    pub id: FindingId,
    pub judge: fn(&Context) -> Vec<Finding>,
}

impl Rule {
    /// What this rule finds; of its own kind only.
    pub fn apply(&self, context: &Context) -> Vec<Finding> {
        let found = (self.judge)(context);
        debug_assert!(found.iter().all(|finding| finding.id == self.id));
        found
    }
}
