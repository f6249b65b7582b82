//! The kernel hooks that the BPF programs are attached to: one table of ability × hook × where it exists.
//!
//! A hook is chosen by what the kernel's BTF has and by trying to load and to attach the program, never by the kernel's
//! version. The first hook of an ability that works is taken.

use super::kernel_types::KernelTypes;

/// The kind of a kernel hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookKind {
    /// A tracepoint whose handler has at least this many arguments.
    Tracepoint { arguments: usize },
    /// The entry of a kernel function, through ftrace (fentry).
    Function,
    /// The entry of a kernel function, through a breakpoint.
    Kprobe,
}

/// One way to get an ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelHook {
    /// Name of the BPF program.
    pub program: &'static str,
    pub kind: HookKind,
    /// Name of the tracepoint or the kernel function.
    pub target: &'static str,
    /// Phrase for the report: what is not observed with this hook.
    pub loss: Option<&'static str>,
}

/// An ability of the backend, and its hooks in the order in which they are tried.
pub(super) struct Ability {
    pub name: &'static str,
    pub hooks: &'static [KernelHook],
    /// Phrase for the report: what is not observed without any of the hooks. None: the backend cannot work without the ability.
    pub loss: Option<&'static str>,
}

const fn tracepoint(program: &'static str, target: &'static str, arguments: usize) -> KernelHook {
    KernelHook { program, kind: HookKind::Tracepoint { arguments }, target, loss: None }
}

const fn function(program: &'static str, target: &'static str) -> KernelHook {
    KernelHook { program, kind: HookKind::Function, target, loss: None }
}

const fn kprobe(program: &'static str, target: &'static str) -> KernelHook {
    KernelHook { program, kind: HookKind::Kprobe, target, loss: None }
}

/// The ability at system calls is first: its program is the largest, and is attached and detached separately.
pub(super) const ABILITIES: &[Ability] = &[
    Ability { name: "calls", hooks: &[tracepoint("on_sys_exit", "sys_exit", 2)], loss: None },
    Ability { name: "forks", hooks: &[tracepoint("on_fork", "sched_process_fork", 2)], loss: None },
    Ability { name: "execs", hooks: &[tracepoint("on_exec", "sched_process_exec", 3)], loss: None },
    Ability {
        name: "exits",
        hooks: &[
            tracepoint("on_exit", "sched_process_exit", 2), // 6.16 and later
            function("on_exit_f", "taskstats_exit"),        // CONFIG_TASKSTATS; arm64: 6.4 and later
            kprobe("on_exit_k", "taskstats_exit"),          // CONFIG_TASKSTATS, CONFIG_KPROBE_EVENTS
            KernelHook {
                loss: Some(
                    "bytes pending in buffers at the exit, and the totals of threads that exit at the same time: there is \
                     no hook at taskstats_exit() (CONFIG_TASKSTATS; --why tells more)",
                ),
                ..tracepoint("on_exit_late", "sched_process_exit", 1)
            },
        ],
        loss: None,
    },
    Ability {
        name: "waits",
        hooks: &[
            tracepoint("on_switch", "sched_switch", 4),     // 5.18 and later
            tracepoint("on_switch_old", "sched_switch", 3), // in the object for kernels before 6.1
        ],
        loss: Some("the time for which calls blocked"),
    },
    Ability {
        name: "buffers at exec",
        hooks: &[
            tracepoint("before_exec", "sched_prepare_exec", 2), // 6.10 and later
            function("before_exec_f", "begin_new_exec"),        // 5.8 and later; arm64: 6.4 and later
            kprobe("before_exec_k", "begin_new_exec"),          // CONFIG_KPROBE_EVENTS
        ],
        loss: Some("bytes pending in buffers at execve(2): no hook for it could be loaded"),
    },
    Ability {
        name: "signals",
        hooks: &[tracepoint("on_signal", "signal_generate", 3)],
        loss: Some("signals to the process group, which the command gets twice"),
    },
];

/// The numbers by which the programs call the kernel's functions that disable and enable preemption (bpf/maps.h), and their names
/// (Linux 6.10).
pub(super) const PREEMPTION: [(i32, &str); 2] =
    [(1_000_001, "bpf_preempt_disable"), (1_000_002, "bpf_preempt_enable")];

/// Names of all functions in the table, and of those that the programs call.
pub(super) fn functions() -> Vec<&'static str> {
    let hooks = ABILITIES.iter().flat_map(|ability| ability.hooks);
    let functions =
        hooks.filter(|hook| !matches!(hook.kind, HookKind::Tracepoint { .. })).map(|hook| hook.target);
    functions.chain(PREEMPTION.map(|(_, name)| name)).collect()
}

/// Names of all tracepoints in the table.
pub(super) fn tracepoints() -> Vec<&'static str> {
    let hooks = ABILITIES.iter().flat_map(|ability| ability.hooks);
    hooks.filter(|hook| matches!(hook.kind, HookKind::Tracepoint { .. })).map(|hook| hook.target).collect()
}

impl KernelHook {
    /// Returns the BTF number of the hook's target, or why BTF rules the hook out.
    pub fn find(&self, kernel: &KernelTypes) -> Result<u32, String> {
        if kernel.skips(self.program) {
            return Err("left out by WEIR_EBPF_SKIP".to_owned());
        }
        match self.kind {
            HookKind::Tracepoint { arguments } => match kernel.tracepoint(self.target) {
                Some((number, has)) if has >= arguments => Ok(number),
                Some((_, has)) => {
                    Err(format!("tracepoint {} has {has} arguments, not {arguments}", self.target))
                }
                None => Err(format!("the kernel has no tracepoint {}", self.target)),
            },
            HookKind::Function | HookKind::Kprobe => {
                let function = kernel.function(self.target);
                function.ok_or_else(|| format!("the kernel's BTF has no function {}()", self.target))
            }
        }
    }

    /// Describes the hook for people.
    pub fn describe(&self) -> String {
        match self.kind {
            HookKind::Tracepoint { .. } if self.loss.is_some() => {
                format!("tracepoint {} (totals only)", self.target)
            }
            HookKind::Tracepoint { .. } => format!("tracepoint {}", self.target),
            HookKind::Function => format!("fentry {}", self.target),
            HookKind::Kprobe => format!("kprobe {}", self.target),
        }
    }
}

/// How the programs run on this kernel, which they must know when they are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProgramSettings {
    /// Another thread may interrupt a program on its CPU: at an fentry hook, and at tracepoints that SRCU guards.
    pub preemptible: bool,
    /// In sampling gaps the program at system calls stays attached and returns at once. Attaching and detaching it patches the
    /// kernel's code; weir does so only on kernels that have the newest hooks, where it was tried thousands of times.
    pub pauses_by_flag: bool,
}

impl ProgramSettings {
    pub fn of(kernel: &KernelTypes) -> Self {
        let newest = ABILITIES.iter().all(|ability| ability.hooks[0].find(kernel).is_ok());
        Self { preemptible: !newest || kernel.preemptible_tracepoints, pauses_by_flag: !newest }
    }

    /// Whether the programs may be attached to `hook` with these settings.
    pub fn allow(self, hook: &KernelHook) -> bool {
        self.preemptible || matches!(hook.kind, HookKind::Tracepoint { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hooks of the kernels as recorded from their BTF: arguments of sched_process_exit, and whether there is
    /// sched_prepare_exec, tracepoint_srcu_srcu_data, taskstats_exit().
    fn kernel(exit_arguments: usize, prepares: bool, srcu: bool, taskstats: bool) -> KernelTypes {
        let mut tracepoints = vec![
            ("sys_exit", 2),
            ("sched_process_fork", 2),
            ("sched_process_exec", 3),
            ("sched_process_exit", exit_arguments),
            ("sched_switch", 4),
            ("signal_generate", 5),
        ];
        tracepoints.extend(prepares.then_some(("sched_prepare_exec", 2)));
        let functions = [Some("begin_new_exec"), taskstats.then_some("taskstats_exit")];
        KernelTypes::with(&tracepoints, &functions.into_iter().flatten().collect::<Vec<_>>(), srcu)
    }

    fn first(kernel: &KernelTypes, ability: &str) -> &'static str {
        let settings = ProgramSettings::of(kernel);
        let ability = ABILITIES.iter().find(|one| one.name == ability).unwrap();
        let mut hooks = ability.hooks.iter();
        hooks.find(|hook| settings.allow(hook) && hook.find(kernel).is_ok()).unwrap().program
    }

    #[test]
    fn tracepoints_are_taken_where_they_have_all_arguments() {
        let here = kernel(2, true, false, true); // 6.18
        assert_eq!((first(&here, "exits"), first(&here, "buffers at exec")), ("on_exit", "before_exec"));
        let settings = ProgramSettings::of(&here);
        assert_eq!(settings, ProgramSettings { preemptible: false, pauses_by_flag: false });
        let newest = ProgramSettings::of(&kernel(2, true, true, true)); // 7.2
        assert_eq!(newest, ProgramSettings { preemptible: true, pauses_by_flag: false });
    }

    #[test]
    fn functions_stand_in_on_older_kernels() {
        let older = ProgramSettings { preemptible: true, pauses_by_flag: true };
        let v6_12 = kernel(1, true, true, true);
        assert_eq!(ProgramSettings::of(&v6_12), older);
        assert_eq!((first(&v6_12, "exits"), first(&v6_12, "buffers at exec")), ("on_exit_f", "before_exec"));
        let v6_1 = kernel(1, false, true, true);
        assert_eq!(ProgramSettings::of(&v6_1), older);
        assert_eq!((first(&v6_1, "exits"), first(&v6_1, "buffers at exec")), ("on_exit_f", "before_exec_f"));
    }

    #[test]
    fn calls_of_the_kernel_are_resolved_or_left_out() {
        use aya_obj::generated::bpf_insn;
        let instruction = |code: u8, source: u8, imm: i32| {
            // SAFETY: a struct of integers, for which zero bytes are valid.
            let mut one: bpf_insn = unsafe { std::mem::zeroed() };
            one.code = code;
            one.set_src_reg(source);
            one.imm = imm;
            one
        };
        let [(disable, _), (enable, _)] = PREEMPTION;
        let before =
            || [instruction(0x85, 0, disable), instruction(0x85, 0, 6), instruction(0x85, 0, enable)];
        let shape =
            |all: &[bpf_insn]| all.iter().map(|one| (one.code, one.src_reg(), one.imm)).collect::<Vec<_>>();
        let calls = PREEMPTION.map(|(call, _)| call);
        let mut resolved = before();
        crate::bpf_syscall::resolve_kernel_calls(&mut resolved, &calls, Some([70, 71]));
        assert_eq!(shape(&resolved), [(0x85, 2, 70), (0x85, 0, 6), (0x85, 2, 71)]);
        let mut left_out = before();
        crate::bpf_syscall::resolve_kernel_calls(&mut left_out, &calls, None);
        assert_eq!(shape(&left_out), [(0x05, 0, 0), (0x85, 0, 6), (0x05, 0, 0)]);
    }

    #[test]
    fn a_hook_that_is_left_out_makes_room_for_the_next() {
        let here = || kernel(2, true, false, true);
        let newer = ["on_exit", "on_exit_f", "before_exec", "before_exec_f"];
        let left_out = here().without(&newer);
        assert_eq!(
            (first(&left_out, "exits"), first(&left_out, "buffers at exec")),
            ("on_exit_k", "before_exec_k")
        );
        assert_eq!(
            ProgramSettings::of(&left_out),
            ProgramSettings { preemptible: true, pauses_by_flag: true }
        );
        let totals = here().without(&["on_exit", "on_exit_f", "on_exit_k"]);
        assert_eq!(first(&totals, "exits"), "on_exit_late");
    }

    #[test]
    fn totals_remain_without_taskstats() {
        let without = kernel(1, false, true, false);
        assert_eq!(first(&without, "exits"), "on_exit_late");
        let why = ABILITIES[3].hooks[1].find(&without).unwrap_err();
        assert_eq!(why, "the kernel's BTF has no function taskstats_exit()");
    }
}
