//! The effects of a plan: for each option, whether it is honoured fully, in part or not at all.

use weir_model::run::{Effect, PlanRow, Technique};

use super::Plan;

/// The degree to which an option reaches the buffers of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// The option is honoured, or the program needs no change.
    Whole,
    /// The option is honoured in part, or by a substitute: a sentence without its full stop.
    InPart(String),
    /// The option has no effect, for this reason.
    Refused(String),
}

/// An option and its effect on one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionEffect {
    /// The option with its value, as in [`PlanRow::option`].
    pub option: String,
    #[allow(missing_docs)]
    pub reach: Reach,
}

impl Plan {
    /// Returns the effect of each option on the command.
    pub fn effects(&self) -> Vec<OptionEffect> {
        let effect = |row: &PlanRow| OptionEffect { option: row.option.clone(), reach: self.reach(row) };
        self.rows.iter().map(effect).collect()
    }

    /// Returns the effect of each option on a program that the command starts. `child` is the plan of that program's own
    /// command line for the same request. An option reaches it only by means that the command's plan has too.
    pub fn effects_in_child(&self, child: &Plan) -> Vec<OptionEffect> {
        let effect = |row: &PlanRow| {
            let name = &child.runtime.facts.name;
            let reach = match self.passes_on(child, row) {
                true => child.reach(row),
                false => Reach::Refused(format!("the command does not pass it on to its {name} program")),
            };
            OptionEffect { option: row.option.clone(), reach }
        };
        child.rows.iter().map(effect).collect()
    }

    /// Tells whether this plan has the means by which a row of a child's plan takes effect.
    fn passes_on(&self, child: &Plan, row: &PlanRow) -> bool {
        match row.technique {
            Technique::Library => self.library == child.library,
            Technique::Outside => self.supervision == child.supervision,
            Technique::Environment => self.hooks == child.hooks && self.variables == child.variables,
            Technique::Option => false,
            Technique::Terminal => self.terminal,
            Technique::Nothing => true,
        }
    }

    /// Returns a sentence for each option that cannot be honoured.
    pub fn refusals(&self) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| row.effect == Effect::Not);
        rows.map(|row| format!("{}: {}", row.option, row.text)).collect()
    }

    /// Returns a sentence for each reason why options are honoured in part or by a substitute. Options with the same reason
    /// share a sentence.
    pub fn remarks(&self) -> Vec<String> {
        let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            let Reach::InPart(reason) = self.reach(row) else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, options)) => options.push(&row.option),
                None => reasons.push((reason, vec![&row.option])),
            }
        }
        reasons.into_iter().map(|(reason, options)| format!("{}: {reason}", options.join(", "))).collect()
    }

    fn reach(&self, row: &PlanRow) -> Reach {
        let runtime = self.runtime.facts.name;
        let unreached = row
            .unreached
            .as_ref()
            .map(|buffers| format!("out of reach in this {runtime} program: {buffers}"));
        match (row.effect, unreached) {
            (Effect::Whole | Effect::Already, None) => Reach::Whole,
            (Effect::Not, _) => Reach::Refused(row.text.clone()),
            (Effect::StandIn, Some(unreached)) => Reach::InPart(format!("{}; {unreached}", row.text)),
            (Effect::StandIn | Effect::Part, None) => Reach::InPart(row.text.clone()),
            (_, Some(unreached)) => Reach::InPart(unreached),
        }
    }
}
