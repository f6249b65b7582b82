//! Generates the list of runtimes from the files and folders in src/runtimes, so that adding a runtime means adding
//! one folder there.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/runtimes");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("src/runtimes");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("src/runtimes is a readable folder")
        .map(|entry| entry.expect("src/runtimes is a readable folder").path())
        .map(|path| if path.is_dir() { path.join("mod.rs") } else { path })
        .collect();
    files.sort();
    let (mut modules, mut entries) = (String::new(), String::new());
    for file in &files {
        let named = if file.ends_with("mod.rs") { file.parent().expect("a folder") } else { file };
        let name = named.file_stem().expect("a file has a name").to_string_lossy();
        modules += &format!("#[path = {file:?}]\npub(crate) mod {name};\n");
        entries += &format!("    &{name}::RUNTIME,\n");
    }
    let table = format!(
        "{modules}\n/// Every runtime, by file name.\npub(crate) static FILES: &[&crate::RuntimeEntry] = &[\n{entries}];\n"
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("runtimes.rs");
    fs::write(out, table).expect("OUT_DIR is writable");
}
