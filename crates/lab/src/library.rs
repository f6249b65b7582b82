//! Finds experiments: those in the binary, and those in the user's folders.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use include_dir::{Dir, include_dir};
use weir_model::lab::ProgramVersion;

use crate::{Error, Experiment, stage};

static FOLDERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../lab");

/// Returns every experiment of the binary, ordered by theme and name.
pub fn all() -> Result<Vec<Experiment>, Error> {
    let mut found = FOLDERS.dirs().map(read).collect::<Result<Vec<_>, _>>()?;
    found.sort_by(|one, other| (one.theme, &one.name).cmp(&(other.theme, &other.name)));
    Ok(found)
}

/// Returns the experiment with this name, or the one in this folder. Fails for an unknown name.
pub fn find(name: &str) -> Result<Experiment, Error> {
    match FOLDERS.get_dir(name) {
        Some(folder) => read(folder),
        None if name.contains('/') || Path::new(name).join("lab.toml").exists() => read_own(Path::new(name)),
        None => Err(Error::Unknown { name: name.into(), nearest: nearest(name) }),
    }
}

/// Returns the experiment with the most similar name.
pub fn nearest(name: &str) -> Option<String> {
    let names = FOLDERS.dirs().filter_map(|folder| folder.path().to_str());
    let near = names.map(|known| (common(known, name), known)).max_by_key(|one| one.0)?;
    (near.0 >= 3).then(|| near.1.to_string())
}

/// Returns the length of the common prefix of two names.
fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

/// A file's name and content.
pub(crate) type OneFile = (String, Cow<'static, [u8]>);

/// Returns the files of an experiment's folder.
pub(crate) fn files(experiment: &Experiment) -> Result<Vec<OneFile>, Error> {
    if let Some(folder) = &experiment.folder {
        return own_files(folder);
    }
    let Some(folder) = FOLDERS.get_dir(&experiment.name) else { return Ok(Vec::new()) };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(folder.files().map(|file| (name(file.path()), Cow::Borrowed(file.contents()))).collect())
}

fn own_files(folder: &Path) -> Result<Vec<OneFile>, Error> {
    let failed = |path: &Path, call, source| Error::File { path: path.into(), call, source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|source| failed(folder, "opendir", source))? {
        let path = entry.map_err(|source| failed(folder, "readdir", source))?.path();
        let Some(name) = path.file_name().filter(|_| path.is_file()) else { continue };
        let content = fs::read(&path).map_err(|source| failed(&path, "read", source))?;
        files.push((name.to_string_lossy().into_owned(), content.into()));
    }
    files.sort();
    Ok(files)
}

/// Returns whether the name of a file is that of a version's program.
fn is_program(name: &str, version: ProgramVersion) -> bool {
    name.split('.').next() == Some(version.name())
}

/// Returns whether the experiment has a program of this version.
pub(crate) fn has_program(experiment: &Experiment, version: ProgramVersion) -> bool {
    files(experiment).is_ok_and(|files| files.iter().any(|(name, _)| is_program(name, version)))
}

/// Returns the source of a version's program, with the compiler command as a comment.
pub fn source(experiment: &Experiment, version: ProgramVersion) -> String {
    let files = match files(experiment) {
        Ok(files) => files,
        Err(error) => return format!("{error}\n"),
    };
    let Some((name, content)) = files.iter().find(|(name, _)| is_program(name, version)) else {
        return format!("{} has no {} program\n", experiment.name, version.name());
    };
    let head = match name.strip_suffix(".c").or(name.strip_suffix(".S")) {
        Some(program) => format!("/* {} */\n", stage::command(experiment, name, program)),
        None => String::new(),
    };
    head + &String::from_utf8_lossy(content)
}

/// Returns the shell functions for checks.
pub(crate) fn functions() -> &'static [u8] {
    FOLDERS.get_file("functions.sh").map_or(b"", |file| file.contents())
}

fn read(folder: &'static Dir<'_>) -> Result<Experiment, Error> {
    let name = folder.path().to_string_lossy().into_owned();
    let text = folder.get_file(folder.path().join("lab.toml")).and_then(|file| file.contents_utf8());
    parse(name, text)
}

/// Reads an experiment from a folder. Its name is that of the folder: `./mine` and `mine/` are the experiment mine.
fn read_own(folder: &Path) -> Result<Experiment, Error> {
    let file = |source| Error::File { path: folder.into(), call: "open", source };
    let whole = fs::canonicalize(folder).map_err(file)?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(whole.join("lab.toml")).ok();
    parse(name, text.as_deref()).map(|experiment| Experiment { folder: Some(whole), ..experiment })
}

fn parse(name: String, text: Option<&str>) -> Result<Experiment, Error> {
    let wrong = |why: String| Error::Broken { name: name.clone(), why };
    let text = text.ok_or_else(|| wrong("has no lab.toml".into()))?;
    let parsed: Result<Experiment, _> = toml::from_str(text);
    parsed
        .map(|experiment| Experiment { name: name.clone(), ..experiment })
        .map_err(|error| wrong(format!("lab.toml: {}", error.message())))
}
