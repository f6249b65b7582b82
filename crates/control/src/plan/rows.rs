//! What will be done about each wish, and what not, said before the program runs.

/// By what means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Technique {
    /// The library that is loaded into the program.
    Library,
    /// From outside, by the process that started it.
    Outside,
    /// An environment variable that the runtime itself knows.
    Environment,
    /// An option of the program itself.
    Option,
    /// A terminal in place of the file or pipe.
    Terminal,
    /// Nothing has to be done, or nothing can be.
    Nothing,
}

impl Technique {
    /// As in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Outside => "outside",
            Self::Environment => "environment",
            Self::Option => "option",
            Self::Terminal => "terminal",
            Self::Nothing => "nothing",
        }
    }
}

/// How far a wish comes true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It does.
    Whole,
    /// Something else stands in for it.
    StandIn,
    /// In part of the program only.
    Part,
    /// It is so already.
    Already,
    /// Not at all.
    Not,
}

impl Effect {
    /// As in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::StandIn => "stand-in",
            Self::Part => "part",
            Self::Already => "already",
            Self::Not => "not",
        }
    }
}

/// One wish and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRow {
    /// The wish, as an option.
    pub wish: String,
    /// How far it comes true.
    pub effect: Effect,
    /// By what means.
    pub technique: Technique,
    /// What is done, or why nothing can be; a sentence without its full stop.
    pub text: String,
}

impl PlanRow {
    /// A wish that comes true.
    pub fn whole(wish: &str, technique: Technique, text: impl Into<String>) -> PlanRow {
        PlanRow { wish: wish.into(), effect: Effect::Whole, technique, text: text.into() }
    }

    /// The same with another effect.
    pub fn but(self, effect: Effect) -> PlanRow {
        PlanRow { effect, ..self }
    }

    /// A wish that is left unfulfilled.
    pub fn not(wish: &str, text: impl Into<String>) -> PlanRow {
        PlanRow { wish: wish.into(), effect: Effect::Not, technique: Technique::Nothing, text: text.into() }
    }
}
