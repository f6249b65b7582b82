//! Generates the list of rules from the files in src/rules, so that adding a rule means adding one file there.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=src/rules");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("src/rules");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("src/rules is a readable folder")
        .map(|entry| entry.expect("src/rules is a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    let (mut modules, mut rules) = (String::new(), String::new());
    for file in &files {
        let name = file.file_stem().expect("a file has a name").to_string_lossy();
        modules += &format!("#[path = {file:?}]\nmod {name};\n");
        rules += &format!("    &{name}::RULE,\n");
    }
    let table = format!("{modules}\n/// Every rule, by file name.\nstatic FILES: &[&Rule] = &[\n{rules}];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("rules.rs");
    fs::write(out, table).expect("OUT_DIR is writable");
}
