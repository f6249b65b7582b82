//! Messages of syslog that arrive at `weir log`.
#![no_main]

weir_fuzz::target!(|input: &[u8]| weir_collect::fuzzing::syslog(input));
