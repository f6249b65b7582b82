//! The options of cp whose order decides.

use clap::ArgMatches;
use weir_copier::{FollowLinks, Preserved};

use super::Args;
use super::options::{joined, without};

/// An option whose place among the others matters.
#[derive(Debug, Clone, Copy)]
pub enum OrderedOption {
    Archive,
    NoDereferenceLinks,
    PreserveDefault,
    Preserve(Preserved),
    NoPreserve(Preserved),
    Follow(FollowLinks),
}

impl OrderedOption {
    /// Returns which links are followed after this option; None if the option does not change that.
    pub fn follow(self) -> Option<FollowLinks> {
        match self {
            Self::Archive | Self::NoDereferenceLinks => Some(FollowLinks::Never),
            Self::Follow(follow) => Some(follow),
            _ => None,
        }
    }

    /// Returns what is preserved after this option.
    pub fn preserved(self, before: Preserved) -> Preserved {
        match self {
            Self::Archive => joined(before, Preserved::ALL),
            Self::NoDereferenceLinks => Preserved { links: true, ..before },
            Self::PreserveDefault => {
                Preserved { mode: true, default_mode: false, owner: true, times: true, ..before }
            }
            Self::Preserve(list) => joined(before, list),
            Self::NoPreserve(list) => without(before, list),
            Self::Follow(_) => before,
        }
    }
}

impl Args {
    /// Stores the order of the options. `matches` is clap's result from which these arguments were made.
    pub fn note_order(&mut self, matches: &ArgMatches) {
        let cp = &self.cp;
        let flags = [
            ("archive", cp.archive, OrderedOption::Archive),
            ("no_dereference_links", cp.no_dereference_links, OrderedOption::NoDereferenceLinks),
            ("preserve_default", cp.preserve_default, OrderedOption::PreserveDefault),
            ("no_dereference", cp.no_dereference, OrderedOption::Follow(FollowLinks::Never)),
            ("dereference_operands", cp.dereference_operands, OrderedOption::Follow(FollowLinks::Operands)),
            ("dereference", cp.dereference, OrderedOption::Follow(FollowLinks::Always)),
        ];
        let given = flags.into_iter().filter(|(_, is_given, _)| *is_given);
        let mut found: Vec<(usize, OrderedOption)> = given
            .filter_map(|(name, _, option)| Some((matches.indices_of(name)?.next_back()?, option)))
            .collect();
        let mut add_lists = |name, lists: &[Preserved], option: fn(Preserved) -> OrderedOption| {
            let indices = matches.indices_of(name).into_iter().flatten();
            found.extend(indices.zip(lists.iter().map(|list| option(*list))));
        };
        add_lists("preserve", &cp.preserve, OrderedOption::Preserve);
        add_lists("no_preserve", &cp.no_preserve, OrderedOption::NoPreserve);
        found.sort_by_key(|(index, _)| *index);
        self.ordered = found.into_iter().map(|(_, option)| option).collect();
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;
    use crate::copy::options::copy_options;

    fn options(words: &str) -> (FollowLinks, Preserved) {
        let table = Args::augment_args(clap::Command::new("copy"));
        let matches = table.try_get_matches_from(format!("copy {words} a b").split(' ')).expect(words);
        let mut args = Args::from_arg_matches(&matches).expect(words);
        args.note_order(&matches);
        let options = copy_options(&args).expect(words);
        (options.follow, options.preserved)
    }

    #[test]
    fn the_last_option_about_links_decides_as_with_cp() {
        assert_eq!(options("-L -a").0, FollowLinks::Never);
        assert_eq!(options("-a -L").0, FollowLinks::Always);
        assert_eq!(options("-aH").0, FollowLinks::Operands);
        assert_eq!(options("-rLP").0, FollowLinks::Never);
        assert_eq!(options("-r -P -L").0, FollowLinks::Always);
        assert_eq!(options("-f -f -v -v -r -R").0, FollowLinks::Never);
    }

    #[test]
    fn lists_of_attributes_are_added_and_removed_in_order() {
        assert!(!options("-p --no-preserve=mode").1.mode);
        assert!(options("--no-preserve=mode -p").1.mode);
        assert!(options("--preserve --no-preserve=mode --preserve=mode").1.mode);
        assert!(!options("-a --no-preserve=links").1.links);
    }
}
