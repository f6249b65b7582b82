//! The options of a plan that are honoured in part or not at all, in sentences.

use weir_model::SourceLanguage;
use weir_model::run::{Effect, PlanRow, Technique};

use super::Plan;
use super::executable::is_of_libweir;

impl Plan {
    /// Returns whether the plan also holds for a program that a command starts: weir adds options to its own command only.
    pub fn holds_for_children(&self) -> bool {
        self.rows.iter().all(|row| row.technique != Technique::Option)
    }

    /// Returns a sentence for each option that cannot be honoured.
    pub fn refusals(&self) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| row.effect == Effect::Not);
        rows.map(|row| format!("{}: {}", row.option, row.text)).collect()
    }

    /// Returns a sentence for each reason why options are honoured in part or by a substitute. Options with the same reason
    /// share a sentence.
    pub fn limits(&self) -> Vec<String> {
        self.reasons(|_| true)
    }

    /// As [`Plan::limits`], without those that the run itself names when they matter.
    pub fn remarks(&self) -> Vec<String> {
        self.reasons(|row| !self.is_told_later(row))
    }

    fn reasons(&self, is_meant: impl Fn(&PlanRow) -> bool) -> Vec<String> {
        let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
        for row in self.rows.iter().filter(|row| is_meant(row)) {
            let Some(reason) = self.partial_reason(row) else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, options)) => options.push(&row.option),
                None => reasons.push((reason, vec![&row.option])),
            }
        }
        reasons.into_iter().map(|(reason, options)| format!("{}: {reason}", options.join(", "))).collect()
    }

    /// Returns whether the run itself names the bytes that it does not reach: most programs of Node and PHP write at once, and most
    /// streams of libweir can be written from outside.
    fn is_told_later(&self, row: &PlanRow) -> bool {
        row.unreached.as_deref().is_some_and(is_of_libweir)
            || matches!(self.runtime.facts.language, SourceLanguage::Node | SourceLanguage::Php)
                && row.option == "--rescue"
                && row.effect == Effect::Part
    }

    /// Returns why an option is honoured in part or by a substitute, without a full stop; None if it is not.
    fn partial_reason(&self, row: &PlanRow) -> Option<String> {
        let runtime = self.runtime.facts.name;
        let unreached = row.unreached.as_ref().map(|buffers| match self.starts_programs {
            true => format!("out of reach in programs that it starts: {buffers}"),
            false => format!("out of reach in this {runtime} program: {buffers}"),
        });
        match (row.effect, unreached) {
            (Effect::Whole | Effect::Already, None) | (Effect::Not, _) => None,
            (Effect::StandIn, Some(unreached)) => Some(format!("{}; {unreached}", row.text)),
            (Effect::StandIn | Effect::Part, None) => Some(row.text.clone()),
            (_, Some(unreached)) => Some(unreached),
        }
    }
}
