//! Selects the first working kernel hook of each ability: loads its BPF program and attaches it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use weir_sys::{Error, limits};

use super::hooks::{ABILITIES, Ability, HookKind, KernelHook, PREEMPTION, ProgramSettings};
use super::kernel_types::KernelTypes;
use super::load::{NO_PERMISSION, PreparedObject, in_parallel, load_program, unusable};
use crate::bpf_syscall::{self, ProgramKind};
use crate::kprobe;

/// The hook that was selected for an ability, and why the hooks before it were not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookChoice {
    /// Part of the engine that the hook serves: `calls`, `exits` …
    pub ability: &'static str,
    /// The kind and the name of the hook. None: the backend works without it.
    pub hook: Option<String>,
    /// The hooks that were tried before, each with the reason.
    pub refused: Vec<String>,
}

/// The loaded programs. All are attached, except the one at system calls.
pub(super) struct Attached {
    pub calls: OwnedFd,
    pub links: Vec<OwnedFd>,
    /// Another descriptor of each program.
    pub programs: Vec<OwnedFd>,
    pub losses: Vec<&'static str>,
    pub hooks: Vec<HookChoice>,
}

/// Selects the first working hook of each ability. Fails if a required ability has none.
pub(super) fn attach_all(loader: &ProgramLoader<'_>) -> Result<Attached, Error> {
    // The verifier takes as long for the first program as for all others together.
    let (calls, others) = in_parallel(
        || loader.first_that_works(&ABILITIES[0], |_, program| Ok(program)),
        || {
            let others = ABILITIES[1..].iter();
            others.map(|ability| loader.first_that_works(ability, attach)).collect::<Result<Vec<_>, Error>>()
        },
    );
    let (calls, choice) = calls?;
    let (_, program, calls) = calls.ok_or_else(|| unusable("program on_sys_exit is missing"))?;
    let (mut links, mut programs, mut losses, mut hooks) =
        (Vec::new(), vec![program], Vec::new(), vec![choice]);
    for ((attached, choice), ability) in others?.into_iter().zip(&ABILITIES[1..]) {
        losses.extend(attached.as_ref().map_or(ability.loss, |(hook, ..)| hook.loss));
        if let Some((_, program, link)) = attached {
            programs.push(program);
            links.push(link);
        }
        hooks.push(choice);
    }
    Ok(Attached { calls, links, programs, losses, hooks })
}

/// Attaches a program to its hook, until the returned descriptor is closed. The program itself stays loaded as long.
fn attach(hook: &KernelHook, program: OwnedFd) -> io::Result<OwnedFd> {
    match hook.kind {
        HookKind::Kprobe => kprobe::attach(program.as_fd(), hook.target),
        HookKind::Tracepoint { .. } | HookKind::Function => bpf_syscall::attach(program.as_fd()),
    }
}

/// A selected hook, a descriptor of its program, and the result of `finish` of [`ProgramLoader::first_that_works`] for the program.
type TakenHook = Option<(&'static KernelHook, OwnedFd, OwnedFd)>;

/// Loads programs of one object.
pub(super) struct ProgramLoader<'a> {
    pub prepared: &'a PreparedObject,
    pub kernel: &'a KernelTypes,
    pub settings: ProgramSettings,
}

impl ProgramLoader<'_> {
    /// Loads the programs of an ability in turn until `finish` succeeds with one. Returns no hook if an optional ability has
    /// none.
    fn first_that_works(
        &self,
        ability: &'static Ability,
        finish: fn(&KernelHook, OwnedFd) -> io::Result<OwnedFd>,
    ) -> Result<(TakenHook, HookChoice), Error> {
        let mut refused = Vec::new();
        for hook in ability.hooks.iter().filter(|hook| self.settings.allow(hook)) {
            let loaded = self.load(hook).and_then(|program| {
                let copy = program.try_clone();
                let finished = copy.and_then(|copy| Ok((copy, finish(hook, program)?)));
                finished.map_err(|error| {
                    unusable(format!("cannot be attached: {error}{}", limits::advice(&error)))
                })
            });
            match loaded {
                Ok((program, fd)) => {
                    let choice = HookChoice { ability: ability.name, hook: Some(hook.describe()), refused };
                    return Ok((Some((hook, program, fd)), choice));
                }
                // Hardened kernels refuse kprobes and fentry alone; without any right they refuse tracepoints too.
                Err(error) if is_permission(&error) && matches!(hook.kind, HookKind::Tracepoint { .. }) => {
                    return Err(error);
                }
                Err(error) => refused.push(format!("{}: {}", hook.describe(), reason(error))),
            }
        }
        match ability.loss {
            Some(_) => Ok((None, HookChoice { ability: ability.name, hook: None, refused })),
            None => Err(unusable(format!("no hook for {}: {}", ability.name, refused.join("; ")))),
        }
    }

    /// Returns the BTF numbers of the kernel's functions that disable and enable preemption. Returns None if the kernel has none, or
    /// never preempts programs at tracepoints. It skips a preempted program for all other threads on the CPU until it continues.
    fn preemption(&self) -> Option<[u32; 2]> {
        let [disable, enable] = PREEMPTION.map(|(_, name)| self.kernel.function(name));
        Some([disable?, enable?]).filter(|_| self.kernel.preemptible_tracepoints)
    }

    fn load(&self, hook: &KernelHook) -> Result<OwnedFd, Error> {
        let number = hook.find(self.kernel).map_err(unusable)?;
        let kind = match hook.kind {
            HookKind::Tracepoint { .. } => ProgramKind::Tracepoint(number),
            HookKind::Function => ProgramKind::Function(number),
            HookKind::Kprobe => ProgramKind::Kprobe,
        };
        let load = |preemption| load_program(self.prepared, hook.program, kind, preemption);
        // The kernel has the functions since Linux 6.10. A verifier that allows no global function between them refuses them.
        match self.preemption() {
            Some(numbers) => load(Some(numbers)).or_else(|_| load(None)),
            None => load(None),
        }
    }
}

/// The text of an error without the name of the backend.
fn reason(error: Error) -> String {
    match error {
        Error::Backend { reason, .. } => reason,
        other => other.to_string(),
    }
}

fn is_permission(error: &Error) -> bool {
    matches!(error, Error::Backend { reason, .. } if reason == NO_PERMISSION)
}
