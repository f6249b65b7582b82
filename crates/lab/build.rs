//! Builds the crate again if a file of /lab changes, because the binary contains the experiments.

fn main() {
    println!("cargo::rerun-if-changed=../../lab");
}
