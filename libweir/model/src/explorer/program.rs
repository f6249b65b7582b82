//! Programs: the steps of a thread, each with the C code that it stands for.

use super::machine::{Address, CELLS, Cell, Op, Operand, REGISTERS, Register, Test};

/// The C code of a step: a piece of the text of a function in a file of libweir/src or libweir/include.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    pub file: &'static str,
    /// The function in which `text` is.
    pub function: &'static str,
    /// The statement or expression; white space does not matter. Empty: a step that has no text of its own, such as a
    /// jump.
    pub text: &'static str,
}

/// The steps of a thread.
#[derive(Clone, Debug)]
pub struct Program {
    /// The thread's name in a trace.
    pub name: &'static str,
    pub ops: Vec<Op>,
    /// The C code of each step.
    pub sources: Vec<Source>,
    /// For each step, the registers that it or a later step reads.
    pub live: Vec<[bool; REGISTERS]>,
    /// For each step, the cells that it or a later step before the next barrier loads.
    pub loaded: Vec<[bool; CELLS]>,
}

/// The target of jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(u16);

#[derive(Debug)]
pub struct Assembler {
    name: &'static str,
    ops: Vec<Op>,
    sources: Vec<Source>,
    labels: Vec<Option<u16>>,
    function: (&'static str, &'static str),
}

impl Assembler {
    /// Begins a program without a step.
    pub fn new(name: &'static str) -> Assembler {
        Assembler { name, ops: Vec::new(), sources: Vec::new(), labels: Vec::new(), function: ("", "") }
    }

    /// Says which C function the following steps stand for.
    pub fn c(&mut self, file: &'static str, function: &'static str) {
        self.function = (file, function);
    }

    /// Appends a step. `text`: the C code in the function.
    pub fn op(&mut self, op: Op, text: &'static str) {
        let (file, function) = self.function;
        self.ops.push(op);
        self.sources.push(Source { file, function, text });
    }

    pub fn load(&mut self, to: Register, at: Cell, text: &'static str) {
        self.op(Op::Load { to, at: Address::Fixed(at), acquire: is_acquire(text) }, text);
    }

    /// Stores into a cell.
    pub fn store(&mut self, at: Cell, value: Operand, text: &'static str) {
        self.op(Op::Store { at: Address::Fixed(at), value, release: is_release(text) }, text);
    }

    pub fn set(&mut self, to: Register, value: Operand) {
        self.op(Op::Set { to, value }, "");
    }

    /// Adds to a register.
    pub fn add(&mut self, to: Register, value: u8) {
        self.op(Op::Add { to, value }, "");
    }

    /// Jumps if the condition is true.
    pub fn branch(&mut self, left: Register, test: Test, right: Operand, target: Label) {
        self.op(Op::Branch { left, test, right, target: target.0 }, "");
    }

    pub fn jump(&mut self, target: Label) {
        self.op(Op::Jump { target: target.0 }, "");
    }

    /// Jumps or goes on.
    pub fn choose(&mut self, target: Label, text: &'static str) {
        self.op(Op::Choose { target: target.0 }, text);
    }

    /// Makes a label that is not bound yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u16 - 1)
    }

    /// Binds a label to the next step.
    pub fn bind(&mut self, label: Label) {
        self.labels[usize::from(label.0)] = Some(self.ops.len() as u16);
    }

    /// Makes a label of the next step.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// Ends the program: the thread ends.
    ///
    /// # Panics
    ///
    /// If a label that a step jumps to is not bound.
    pub fn finish(mut self) -> Program {
        self.op(Op::End, "");
        let labels = self.labels;
        for op in &mut self.ops {
            if let Op::Branch { target, .. } | Op::Jump { target } | Op::Choose { target } = op {
                *target = labels[usize::from(*target)].expect("a label is bound");
            }
        }
        let live = live_registers(&self.ops);
        let loaded = loaded_before_a_barrier(&self.ops);
        Program { name: self.name, ops: self.ops, sources: self.sources, live, loaded }
    }
}

/// Returns whether the C code of a store has release order.
pub fn is_release(text: &str) -> bool {
    ["RELEASE", "release", "PUBLISH", "weir__publish", "atomic_store("]
        .iter()
        .any(|order| text.contains(order))
}

/// Returns whether the C code of a load has acquire order. A load of the model itself has it too.
pub fn is_acquire(text: &str) -> bool {
    text.is_empty() || ["ACQUIRE", "acquire", "atomic_load("].iter().any(|order| text.contains(order))
}

/// Returns the registers that a step reads, and the one that it sets.
fn registers(op: &Op) -> (Vec<Register>, Option<Register>) {
    let of = |operand: Operand| match operand {
        Operand::Of(register) => vec![register],
        Operand::Value(_) => vec![],
    };
    let index = |address: Address| match address {
        Address::Indexed(_, register) => vec![register],
        Address::Fixed(_) => vec![],
    };
    match *op {
        Op::Load { to, at, .. } => (index(at), Some(to)),
        Op::Store { at, value, .. } => ([index(at), of(value)].concat(), None),
        Op::CompareExchange { ok, .. } => (vec![], Some(ok)),
        Op::FutexWait { expected, .. } => (vec![expected], None),
        Op::FutexWake { count, .. } => (vec![count], None),
        Op::WriteCell { at, .. } => (index(at), None),
        Op::WriteValue { number, .. } => (vec![number], None),
        Op::Set { to, value } => (of(value), Some(to)),
        Op::Add { to, .. } => (vec![to], Some(to)),
        Op::Branch { left, right, .. } => ([vec![left], of(right)].concat(), None),
        Op::Accept { bytes } => (vec![bytes], None),
        Op::ExitGroup | Op::Fork => (vec![super::steps::SNAPSHOT], None),
        _ => (vec![], None),
    }
}

/// Returns the steps that can follow a step.
fn successors(op: &Op, at: usize) -> Vec<usize> {
    match *op {
        Op::Jump { target } => vec![usize::from(target)],
        Op::Branch { target, .. } | Op::Choose { target } => vec![at + 1, usize::from(target)],
        Op::End | Op::ExitGroup => vec![],
        _ => vec![at + 1],
    }
}

fn live_registers(ops: &[Op]) -> Vec<[bool; REGISTERS]> {
    let mut live = vec![[false; REGISTERS]; ops.len()];
    loop {
        let before = live.clone();
        for (at, op) in ops.iter().enumerate().rev() {
            let mut now = [false; REGISTERS];
            for next in successors(op, at) {
                (0..REGISTERS).for_each(|register| now[register] |= live[next][register]);
            }
            let (reads, sets) = registers(op);
            if let Some(set) = sets {
                now[usize::from(set)] = false;
            }
            reads.into_iter().for_each(|read| now[usize::from(read)] = true);
            live[at] = now;
        }
        if live == before {
            return live;
        }
    }
}

/// Returns the steps that can follow a step without a barrier in between. An exchange with acquire order that succeeds is a
/// barrier for loads: of the branch on its result that follows it, only the way after a failure counts.
fn successors_without_barrier(ops: &[Op], at: usize) -> Vec<usize> {
    let exchanged = at.checked_sub(1).map(|before| ops[before]);
    match (exchanged, ops[at]) {
        (
            Some(Op::CompareExchange { ok, acquire: true, .. }),
            Op::Branch { left, test, right: Operand::Value(result), target },
        ) if left == ok && test != Test::Less => {
            let jumps_on_success = (test == Test::Same) == (result == 1);
            vec![if jumps_on_success { at + 1 } else { usize::from(target) }]
        }
        _ => successors(&ops[at], at),
    }
}

fn loaded_before_a_barrier(ops: &[Op]) -> Vec<[bool; CELLS]> {
    let mut loaded = vec![[false; CELLS]; ops.len()];
    loop {
        let before = loaded.clone();
        for (at, op) in ops.iter().enumerate().rev() {
            let mut now = [false; CELLS];
            if !matches!(
                op,
                Op::Membarrier | Op::FetchAdd { .. } | Op::FutexWait { .. } | Op::FutexWake { .. }
            ) {
                for next in successors_without_barrier(ops, at) {
                    (0..CELLS).for_each(|cell| now[cell] |= loaded[next][cell]);
                }
            }
            match *op {
                Op::Load { at, .. } | Op::WriteCell { at, .. } => now[cells(at)].fill(true),
                Op::CompareExchange { at, .. } => now[usize::from(at)] = true,
                _ => {}
            }
            loaded[at] = now;
        }
        if loaded == before {
            return loaded;
        }
    }
}

/// An array may be accessed in each of its cells, which are the last ones.
fn cells(address: Address) -> std::ops::Range<usize> {
    match address {
        Address::Fixed(cell) => usize::from(cell)..usize::from(cell) + 1,
        Address::Indexed(cell, _) => usize::from(cell)..CELLS,
    }
}

/// The cells that a program loads, and those that it stores into.
#[derive(Clone, Copy, Debug)]
pub struct Accesses {
    /// Loaded, also by a system call.
    pub loads: [bool; CELLS],
    pub stores: [bool; CELLS],
}

impl Accesses {
    /// Returns those of a program.
    pub fn of(program: &Program) -> Accesses {
        let mut accesses = Accesses { loads: [false; CELLS], stores: [false; CELLS] };
        for op in &program.ops {
            match *op {
                Op::Load { at, .. } | Op::WriteCell { at, .. } => accesses.loads[cells(at)].fill(true),
                Op::Store { at, .. } => accesses.stores[cells(at)].fill(true),
                Op::CompareExchange { at, .. } | Op::FetchAdd { at, .. } => {
                    accesses.loads[usize::from(at)] = true;
                    accesses.stores[usize::from(at)] = true;
                }
                Op::FutexWait { at, .. } => accesses.loads[usize::from(at)] = true,
                Op::Fork => accesses.loads.fill(true),
                _ => {}
            }
        }
        accesses
    }
}
