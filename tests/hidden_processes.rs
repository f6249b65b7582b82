//! /proc with the mount option hidepid hides processes of other users: weir says so, and claims nothing about them.

mod common;

use std::path::Path;
use std::process::Command;

use common::{KillOnDrop, as_nobody, for_nobody, has_private_mounts, skip, text};
use serde_json::Value;

/// Runs weir as the user nobody, with a /proc that hides. Returns its status and what it prints.
fn hidden(dir: &Path, hidepid: &str, arguments: &[&str]) -> (Option<i32>, String) {
    const SCRIPT: &str = "mount -t proc -o hidepid=$0 proc /proc && exec setpriv --reuid 65534 --regid 65534 \
                          --clear-groups timeout -s KILL 60 \"$@\"";
    let weir = as_nobody(dir, arguments);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", SCRIPT, hidepid]).arg(weir.get_program()).args(weir.get_args());
    let output =
        command.current_dir(dir).env("HOME", dir).env("XDG_STATE_HOME", dir).output().expect("unshare");
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_hidden_process_is_not_called_ended() {
    const TEST: &str = "a_hidden_process_is_not_called_ended";
    if !has_private_mounts() {
        return skip(TEST, "there is no private mount namespace");
    }
    let dir = for_nobody();
    let other = KillOnDrop(Command::new("sleep").arg("600").spawn().expect("sleep"));
    let pid = other.0.id().to_string();
    for hidepid in ["1", "2"] {
        for verb in [
            &["peek"][..],
            &["flush"],
            &["top", "--once", "-i", "100ms", "--pid"],
            &["trace", "--time", "100ms", "--pid"],
            &["trace", "--engine", "sample", "--time", "100ms", "--pid"],
        ] {
            let (status, said) = hidden(dir.path(), hidepid, &[verb, &[&pid]].concat());
            let expected = format!("weir: process {pid} is hidden: /proc is mounted with hidepid");
            let failed = if verb[0] == "trace" { 125 } else { 1 };
            assert!(
                status == Some(failed) && said.contains(&expected),
                "{verb:?} {hidepid}: {status:?}: {said}"
            );
        }
        let (_, said) = hidden(dir.path(), hidepid, &["peek", "4000000"]);
        assert!(said.contains("no process 4000000"), "{said}");
        let (status, said) =
            hidden(dir.path(), hidepid, &["top", "--once", "-i", "100ms", "--quiet", "--json", "-"]);
        let document: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((status, &document["hides_others"]), (Some(0), &Value::Bool(true)), "{said}");
        let (_, said) = hidden(dir.path(), hidepid, &["doctor"]);
        assert!(said.contains("/proc hides processes of other users"), "{said}");
    }
}
