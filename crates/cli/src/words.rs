//! Words that the shell completes. What is typed is taken as it is: the plan, which knows the combinations,
//! judges it and suggests.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

/// A parser of strings that names those it knows.
#[derive(Clone)]
pub struct Words(Vec<&'static str>);

/// `known` for completion.
pub fn words(known: impl IntoIterator<Item = &'static str>) -> Words {
    Words(known.into_iter().collect())
}

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
