//! The result of `weir doctor`: what this kernel, these rights and this container allow.
//!
//! Field names are the interface (docs/schemas/weir-doctor-1.schema.json).

use serde::Serialize;

/// Value of [`DoctorDocument::schema`].
pub const SCHEMA: &str = "weir-doctor/1";

/// The document that `weir doctor --json` writes.
#[derive(Debug, Serialize)]
pub struct DoctorDocument<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Its fields are those of the document.
    #[serde(flatten)]
    pub doctor: &'a Doctor,
}

impl<'a> DoctorDocument<'a> {
    /// Makes the document of a result.
    pub fn new(doctor: &'a Doctor) -> Self {
        Self { schema: SCHEMA, doctor }
    }
}

/// Abilities of this host.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs)]
pub struct Doctor {
    /// Release of the kernel, from uname(2).
    pub kernel: String,
    pub arch: String,
    /// Effective user ID of weir.
    pub uid: u32,
    /// The user ID is one of a user namespace, whose root is not that of the machine. `None`: /proc, which shows it, is not mounted.
    pub user_namespace: Option<bool>,
    pub abilities: Vec<HostAbility>,
    /// The hook of each part of the eBPF engine; empty if the engine does not load.
    pub hooks: Vec<EbpfHook>,
}

/// One ability of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct HostAbility {
    pub name: &'static str,
    /// `false`: nothing is known, because the directory or the missing /proc allows no attempt; `works` is then `false`.
    pub tried: bool,
    pub works: bool,
    /// Finding, or the error that the kernel returned.
    pub detail: String,
    /// Remedy, in words; `None` if the ability works.
    pub advice: Option<String>,
}

/// The kernel hook of a part of the eBPF engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct EbpfHook {
    pub part: String,
    /// `None`: the engine works without this part.
    pub hook: Option<String>,
    /// Hooks that were tried before, with the reason why each was not taken.
    pub refused: Vec<String>,
}
