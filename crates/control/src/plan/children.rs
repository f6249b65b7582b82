//! The programs that a command starts, by its script or by a service: the parts of a plan that reach them, and those that
//! do not.

use std::io::Read;
use std::path::Path;

use weir_model::run::{Effect, PlanRow, Technique};
use weir_model::{RuntimeFix, SourceLanguage, shell_quoted};
use weir_sys::file_system::open_regular;

use super::executable::is_of_libweir;
use super::guarantees::PRIVATE_STDIN;
use super::program::ResolvedProgram;
use super::wrappers::WrappedCommand;
use super::{HostCapabilities, Plan, PlanBuilder, SUBSTITUTE_DELAY, plan_within, shell_commands, wrappers};

/// The most programs that start each other in a command.
pub(super) const MAX_DEPTH: u32 = 4;
/// Bounds the time to read a script.
const MAX_SCRIPT_BYTES: u64 = 64 << 10;

impl PlanBuilder<'_> {
    /// Extends the plan to the programs that the command starts: they inherit the variables that they need, and each row
    /// names those that it does not reach.
    pub(super) fn add_children(&mut self, depth: u32) {
        let program = &self.plan.program;
        if depth >= MAX_DEPTH {
            return;
        }
        // The command's own rows name the files that are out of reach.
        let host = HostCapabilities { no_foreign_files: false, ..self.host.clone() };
        if let Some(messenger) = wrappers::messenger(&program.names) {
            self.add_messenger(messenger);
            self.lose(&[Technique::Library, Technique::Outside, Technique::Environment, Technique::Option]);
        } else if let Some(wrapped) = wrappers::command(program).filter(|wrapped| !wrapped.keeps_root) {
            self.add_other_root(wrapped.wrapper);
            self.lose(&[Technique::Library, Technique::Environment, Technique::Option]);
        } else if let Some(tracer) = wrappers::tracer(program) {
            let traced = HostCapabilities { tracer: Some(tracer.into()), ..host };
            let command = wrappers::command(program).map(|wrapped| &program.arguments[wrapped.at..]);
            let child = command.map(|command| plan_within(command, self.request, &traced, depth + 1));
            self.add_tracer(tracer);
            self.lose(&[Technique::Outside]);
            if let Some(child) = child {
                self.add_child(&child, |row| not_reached(&child, false, row));
            }
        } else if let Some(wrapped) = wrappers::command(program) {
            let child = plan_within(&program.arguments[wrapped.at..], self.request, &host, depth + 1);
            let takes_library = program.takes_library();
            let lost = [Technique::Environment, Technique::Option, Technique::Library];
            self.lose(&lost[..if takes_library { 2 } else { 3 }]);
            self.add_child(&child, |row| without_variables(&wrapped, takes_library, &child, row));
        } else if self.plan.runtime.facts.language == SourceLanguage::Shell {
            let plan = |command: Vec<_>| (plan_within(&command, self.request, &host, depth + 1), command);
            let children: Vec<_> = shell_commands::commands(&script(program)).into_iter().map(plan).collect();
            // Programs that write directly count only if there are no others: a script often ends with cat or gzip.
            let only_direct = children.iter().all(|(child, _)| writes_directly(child));
            for (child, command) in
                children.iter().filter(|(child, _)| only_direct || !writes_directly(child))
            {
                self.add_child(child, |row| not_reached(child, child.command != *command, row));
            }
        }
    }

    /// Adds a program that the command starts. `why_not` returns why a row of its plan does not reach it.
    fn add_child(&mut self, child: &Plan, why_not: impl Fn(&PlanRow) -> Option<String>) {
        self.plan.starts_programs = true;
        self.lose(&child.lost_techniques);
        let name = child.program.names.first().map_or("?", String::as_str);
        for number in 0..self.plan.rows.len() {
            let option = &self.plan.rows[number].option;
            let Some(of_child) = child.rows.iter().find(|row| row.option == *option) else { continue };
            self.inherit(child, of_child.technique);
            if of_child.option == PRIVATE_STDIN && has_private_input_anyway(child, of_child) {
                continue;
            }
            if let Some(why) = why_not(of_child) {
                self.add_unreached(number, format!("{name} ({why})"));
            }
        }
    }

    /// Notes that these techniques do not reach programs that the command starts.
    fn lose(&mut self, techniques: &[Technique]) {
        let known = &mut self.plan.lost_techniques;
        for technique in techniques {
            if !known.contains(technique) {
                known.push(*technique);
            }
        }
    }

    /// Adds to the plan of the parent what an option needs in the child.
    fn inherit(&mut self, child: &Plan, technique: Technique) {
        match technique {
            Technique::Environment => {
                for variable in &child.variables {
                    if !self.plan.variables.contains(variable) {
                        self.plan.variables.push(*variable);
                    }
                }
                if self.plan.hooks.is_none() {
                    self.plan.hooks.clone_from(&child.hooks);
                }
            }
            // The streams of gathered calls are not drained from outside.
            Technique::Outside if self.plan.coalesce.is_none() => {
                let Some(needed) = child.supervision else { return };
                needed.delay.inspect(|delay| self.bound_delay(*delay));
                let own = self.supervision();
                own.rescue |= needed.rescue;
                own.fix_fork |= needed.fix_fork;
            }
            Technique::Library if self.plan.library.is_none() => self.plan.library.clone_from(&child.library),
            _ => {}
        }
    }

    /// Replaces the rows of a program that has a service start the command: no option reaches the service's process. The program
    /// itself reads the standard input and passes it on.
    fn add_messenger(&mut self, messenger: &str) {
        let is_replaced = |row: &&mut PlanRow| row.effect != Effect::Not && row.option != PRIVATE_STDIN;
        for row in self.plan.rows.iter_mut().filter(is_replaced) {
            let text = format!("{messenger} has another process start the program: use weir there");
            *row = PlanRow::honoured(&row.option, Technique::Nothing, text).with_effect(Effect::Part);
        }
    }

    /// Replaces what needs a tracer in the rows of a program that traces others. The options are meant for the traced programs, and
    /// weir detaches from those.
    fn add_tracer(&mut self, tracer: &str) {
        let why = format!("{tracer} traces its programs itself, and a process can have only one tracer");
        for row in self.plan.rows.iter_mut().filter(|row| row.effect != Effect::Not) {
            if row.technique == Technique::Outside {
                *row = PlanRow::honoured(&row.option, Technique::Nothing, &*why).with_effect(Effect::Part);
            } else if row.option.starts_with("--coalesce") {
                row.effect = Effect::Part;
                row.text += &format!("; but a kill loses gathered bytes: {why}");
            }
        }
    }

    /// Replaces what needs the library in the rows of a program that starts the command in another root directory or with
    /// other mounts, where the library's file may not be.
    fn add_other_root(&mut self, wrapper: &str) {
        let why = format!("{wrapper} starts the program among other files, where weir's library may not be");
        let is_traceable = self.not_traceable().is_none() && self.plan.coalesce.is_none();
        let is_short = |option: &str| option.ends_with(" none") || option.ends_with(" line");
        let mut needs_library = false;
        for number in 0..self.plan.rows.len() {
            let row = &self.plan.rows[number];
            if row.technique != Technique::Library || row.effect == Effect::Not {
                continue;
            }
            let is_output = ["--stdout", "--stderr"].iter().any(|one| row.option.starts_with(one));
            let option = row.option.clone();
            self.plan.rows[number] = if is_traceable && is_output && is_short(&option) {
                self.bound_delay(SUBSTITUTE_DELAY);
                let text = format!("{why}: bytes older than 10 ms are written from outside");
                PlanRow::honoured(&option, Technique::Outside, text).with_effect(Effect::StandIn)
            } else {
                needs_library = true;
                let text = format!("not known: {why}");
                PlanRow::honoured(&option, Technique::Nothing, text).with_effect(Effect::Part)
            };
        }
        // Ruby and Perl do not start without the file that their variable names.
        self.plan.hooks = None;
        // The loader prints an error about a library that is not there.
        if !needs_library && !self.request.rescue {
            self.plan.library = None;
        }
    }

    fn add_unreached(&mut self, number: usize, child: String) {
        let row = &mut self.plan.rows[number];
        if row.effect == Effect::Not {
            return;
        }
        let all = match row.unreached.take() {
            Some(known) => format!("{known}, {child}"),
            None => child,
        };
        *row = row.clone().without(Some(all));
    }
}

/// Returns whether the plan is for a program whose output no mode of a stream changes.
fn writes_directly(plan: &Plan) -> bool {
    matches!(plan.runtime.facts.fixes.line_buffered, RuntimeFix::NoEffect(_) | RuntimeFix::IfForced(_))
}

/// Returns whether a program that the command starts cannot read the command's input, also if its own plan does not say so: its parent
/// replaces its standard input before it starts. A shell can read a file in a loop of its own.
fn has_private_input_anyway(child: &Plan, row: &PlanRow) -> bool {
    child.runtime.facts.language != SourceLanguage::Shell && row.unreached.is_none()
}

/// Returns the text of a shell's script, from its arguments or its file; empty if it reads the script from its input.
fn script(program: &ResolvedProgram) -> String {
    if let Some(script) = shell_commands::script(&program.arguments).filter(|_| !program.script) {
        return script;
    }
    let argument = || shell_commands::script_file(&program.arguments).map(Path::new);
    let path = if program.script { program.path.as_deref() } else { argument() };
    let mut text = Vec::new();
    let file = path.and_then(|path| open_regular(path).ok());
    let _missing = file.map(|file| file.take(MAX_SCRIPT_BYTES).read_to_end(&mut text));
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns why an option does not reach the program of a plan that another one starts; None if it does. `needs_option` says
/// whether weir would add an option to the program's own.
fn not_reached(child: &Plan, needs_option: bool, row: &PlanRow) -> Option<String> {
    let is_for_command = match row.technique {
        // The script may give the option itself.
        Technique::Option => needs_option,
        technique => technique == Technique::Terminal,
    };
    if is_for_command && row.option != "--pty" && row.effect != Effect::Not {
        let word = shell_quoted(&child.program.word);
        return Some(format!("only as the command itself: weir run {} -- {word} …", row.option));
    }
    match (&row.unreached, row.effect) {
        (Some(unreached), _) if !is_of_libweir(unreached) => Some(unreached.clone()),
        (None, Effect::Not) => Some(row.text.clone()),
        (None, Effect::Part | Effect::StandIn) if row.technique == Technique::Nothing => {
            Some(row.text.clone())
        }
        _ => None,
    }
}

/// As [`not_reached`], for the command of a wrapper that removes variables. The library adds its own again at the wrapper's
/// execve(2), if the wrapper has loaded it.
fn without_variables(
    wrapped: &WrappedCommand,
    takes_library: bool,
    child: &Plan,
    row: &PlanRow,
) -> Option<String> {
    let needs_variables = match row.technique {
        Technique::Library => !takes_library,
        Technique::Environment | Technique::Option => true,
        _ => false,
    };
    if needs_variables && row.effect != Effect::Not {
        let (wrapper, word) = (wrapped.wrapper, shell_quoted(&child.program.word));
        return Some(format!("{wrapper} removes the variables of weir: {wrapper} … weir run -- {word} …"));
    }
    not_reached(child, false, row)
}
