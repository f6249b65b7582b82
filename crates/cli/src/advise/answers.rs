//! The answers to the questions: from options, a trace, a dialogue, or defaults.

use std::io::{stderr, stdin};

use dialoguer::console::Term;
use dialoguer::theme::SimpleTheme;
use dialoguer::{Input, Select};
use weir_advise::TracedQuestion;
use weir_model::Size;
use weir_model::advise::{AdviceHost, AdviceLanguage, AdviceQuestion, AllowedLoss, Medium};
use weir_model::duration::format_seconds;
use weir_sys::file_system::is_terminal;

use super::{Args, Halt, parse_rate, parse_record};
use crate::values::parse_nonzero_duration;

/// Defaults of the dialogue and of -y: a line of a log, a chatty service.
const RECORD_BYTES: u64 = 100;
const RATE: f64 = 10.0;
const LATENCY_S: f64 = 1.0;

/// Returns the question. Asks on a terminal for each answer that neither an option nor the trace gives. Fails without a
/// terminal; the error names the options.
pub fn question(
    args: &Args,
    host: &AdviceHost,
    traced: Option<&TracedQuestion>,
) -> Result<AdviceQuestion, Halt> {
    let record_bytes =
        args.record_bytes.map(|size| size.0).or_else(|| traced.map(|traced| traced.record_bytes));
    let rate = args.rate.or_else(|| traced.map(|traced| traced.rate));
    let loss = args.loss.or_else(|| traced.and_then(|traced| traced.loss));
    let missing = missing(args, record_bytes.is_some(), rate.is_some(), loss.is_some());
    let asks = !args.yes && is_terminal(stdin()) && is_terminal(stderr());
    if !args.yes && !asks && !missing.is_empty() {
        let options = missing.join(", ");
        let text = format!("there is no terminal to ask on: give {options}, or -y for the defaults");
        return Err(Halt::Usage(text));
    }
    let dialogue = Dialogue { asks: asks && !missing.is_empty() };
    let traced_lang = traced.and_then(|traced| traced.lang);
    Ok(AdviceQuestion {
        record_bytes: match record_bytes {
            Some(bytes) => bytes,
            None => dialogue.text("Bytes of a record, with its end", &RECORD_BYTES.to_string(), |text| {
                parse_record(text).map(|Size(bytes)| bytes)
            })?,
        },
        rate: match rate {
            Some(rate) => rate,
            None => dialogue.text("Records per second", &RATE.to_string(), parse_rate)?,
        },
        loss: match loss {
            Some(loss) => loss,
            None => dialogue.choice(
                "A kill or a power cut may lose",
                AllowedLoss::ALL,
                AllowedLoss::Buffer,
                AllowedLoss::text,
            )?,
        },
        latency_s: match args.latency {
            Some(latency) => latency.as_secs_f64(),
            None => {
                dialogue.text("Another process must see a record within", &default_latency(), |text| {
                    parse_nonzero_duration(text).map(|latency| latency.as_secs_f64())
                })?
            }
        },
        sharers: match args.sharers.or_else(|| traced.map(|traced| traced.sharers.max(1))) {
            Some(sharers) => sharers,
            None => dialogue.text("Threads or processes that write the file", "1", parse_sharers)?,
        },
        medium: match args.medium {
            Some(medium) => medium,
            None => dialogue.choice("The file is on", Medium::ALL, host.medium, Medium::text)?,
        },
        lang: match args.lang.or(traced_lang) {
            Some(lang) => lang,
            None => dialogue.choice(
                "The program is in",
                AdviceLanguage::ALL,
                AdviceLanguage::C,
                AdviceLanguage::text,
            )?,
        },
        dir: args.dir.display().to_string(),
    })
}

fn default_latency() -> String {
    format_seconds(LATENCY_S).replace(' ', "")
}

/// Returns the options of the decisive questions that are not answered.
fn missing(args: &Args, has_record: bool, has_rate: bool, has_loss: bool) -> Vec<&'static str> {
    let answered = [
        ("--record-bytes", has_record),
        ("--rate", has_rate),
        ("--loss", has_loss),
        ("--latency", args.latency.is_some()),
    ];
    answered.into_iter().filter(|(_, answered)| !answered).map(|(option, _)| option).collect()
}

fn parse_sharers(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(sharers) if (1..=10_000).contains(&sharers) => Ok(sharers),
        _ => Err(format!("'{text}' is not a number of writers from 1 to 10000")),
    }
}

/// Asks, or takes the defaults.
struct Dialogue {
    asks: bool,
}

impl Dialogue {
    fn text<T>(
        &self,
        prompt: &str,
        default: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Halt> {
        if !self.asks {
            return parse(default).map_err(Halt::Failed);
        }
        let answer: String = Input::with_theme(&SimpleTheme)
            .with_prompt(prompt)
            .default(default.to_string())
            .validate_with(|text: &String| parse(text).map(|_| ()))
            .interact_text()
            .map_err(|error| ended(&error))?;
        parse(&answer).map_err(Halt::Failed)
    }

    fn choice<T: Copy + PartialEq>(
        &self,
        prompt: &str,
        all: &[T],
        default: T,
        text: fn(T) -> &'static str,
    ) -> Result<T, Halt> {
        if !self.asks {
            return Ok(default);
        }
        let at = Select::with_theme(&SimpleTheme)
            .with_prompt(prompt)
            .items(all.iter().map(|one| text(*one)))
            .default(all.iter().position(|one| *one == default).unwrap_or(0))
            .interact_opt()
            .map_err(|error| ended(&error))?
            .ok_or(Halt::Stopped)?;
        Ok(all[at])
    }
}

/// Returns the end after an error of the dialogue: Ctrl-C, or a terminal that is gone. Shows the cursor, which a list hides.
fn ended(error: &dialoguer::Error) -> Halt {
    // A terminal that is gone has no cursor.
    let _ = Term::stderr().show_cursor();
    let dialoguer::Error::IO(error) = error;
    match error.kind() {
        std::io::ErrorKind::Interrupted => Halt::Stopped,
        _ => Halt::Failed(format!("the terminal: {error}; give the answers as options, or -y")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_parsed() {
        assert_eq!(parse_nonzero_duration(&default_latency()).unwrap().as_secs_f64(), LATENCY_S);
        assert_eq!(parse_rate(&RATE.to_string()), Ok(RATE));
        assert!(parse_sharers("0").is_err() && parse_sharers("x").is_err() && parse_sharers("4") == Ok(4));
    }

    #[test]
    fn a_rate_is_a_positive_number() {
        for text in ["0", "-1", "NaN", "inf", "1e99", "soon", ""] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!(parse_rate("0.2"), Ok(0.2));
        assert!(parse_record("2G").is_err() && parse_record("0").is_err());
    }
}
