//! Tests of each rule: a program with the fault, its fixed twin, and the limits between them.

mod advice;
mod coalesce;
mod compressed;
mod copies;
mod dialogue;
mod durability;
mod errors;
mod generated;
mod held;
mod inherited;
mod last_writes;
mod left_input;
mod load;
mod loss;
mod order;
mod random;
mod reads;
mod renames;
mod reopen;
mod shared_input;
mod shared_offset;
mod small_calls;
mod split_lines;
mod stuck;
mod torn_sockets;
mod whole;
