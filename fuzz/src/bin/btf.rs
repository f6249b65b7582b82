//! The kernel's types.
#![no_main]

weir_fuzz::target!(weir_trace_ebpf::fuzzing::kernel_types);
