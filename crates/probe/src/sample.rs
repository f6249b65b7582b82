//! The engine without any right: looks at /proc now and then.
use crate::Error;
use crate::engine::{Ended, Look, Options, SendSink, Target, Tick};
/// x
pub fn run(
    _t: Target,
    _o: &Options,
    _s: &mut SendSink<'_>,
    _l: &mut Look<'_>,
    _k: &mut Tick<'_>,
) -> Result<Ended, Error> {
    Err(Error::Engine { engine: "sample", reason: String::new() })
}
