//! Creates the folder of a new experiment, which can be run immediately.

use std::fs;
use std::io;
use std::path::Path;

use crate::Error;

const FILES: [(&str, &str); 4] = [
    ("lab.toml", include_str!("../template/lab.toml")),
    ("broken.c", include_str!("../template/broken.c")),
    ("fixed.c", include_str!("../template/fixed.c")),
    ("check.sh", include_str!("../template/check.sh")),
];

/// Creates the folder and returns the names of its files. Fails if the folder exists.
pub fn make(folder: &Path) -> Result<Vec<&'static str>, Error> {
    fs::create_dir(folder).map_err(|source| {
        let source = match source.kind() {
            io::ErrorKind::AlreadyExists => {
                io::Error::new(source.kind(), "it is there already: choose another name")
            }
            _ => source,
        };
        Error::File { path: folder.into(), call: "mkdir", source }
    })?;
    for (name, content) in FILES {
        let path = folder.join(name);
        fs::write(&path, content).map_err(|source| Error::File { path, call: "write", source })?;
    }
    Ok(FILES.map(|file| file.0).to_vec())
}
