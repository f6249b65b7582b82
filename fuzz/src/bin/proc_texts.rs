//! maps, stat, status, fdinfo, io, cmdline and mountinfo, with any names.
#![no_main]

weir_fuzz::target!(weir_sys::fuzzing::proc_texts);
