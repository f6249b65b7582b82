//! The experiments are compiled in: a new or changed file is a reason to build again.

fn main() {
    println!("cargo::rerun-if-changed=../../lab");
}
