//! A version as all registries take it.

use anyhow::{Result, bail};
use std::fmt;
use std::str::FromStr;

/// `X.Y.Z`, or a pre-release that Python knows too: `X.Y.Z-alpha.N`, `-beta.N`, `-rc.N`. In the order of releases.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    numbers: [u64; 3],
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha(u64),
    Beta(u64),
    Candidate(u64),
    Final,
}

impl Version {
    /// The version that is worked on after this one: the next minor, or what a pre-release leads to.
    pub(super) fn next(&self) -> Self {
        let [major, minor, patch] = self.numbers;
        let numbers = if self.stage == Stage::Final { [major, minor + 1, 0] } else { [major, minor, patch] };
        Self { numbers, stage: Stage::Final }
    }
}

impl FromStr for Version {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (numbers, stage) = match text.split_once('-') {
            Some((numbers, stage)) => (numbers, Some(stage)),
            None => (text, None),
        };
        let numbers: Vec<u64> = numbers.split('.').map_while(number).collect();
        let stage = match stage.map(|stage| stage.split_once('.').unwrap_or((stage, ""))) {
            None => Some(Stage::Final),
            Some(("alpha", n)) => number(n).map(Stage::Alpha),
            Some(("beta", n)) => number(n).map(Stage::Beta),
            Some(("rc", n)) => number(n).map(Stage::Candidate),
            Some(_) => None,
        };
        match (<[u64; 3]>::try_from(numbers), stage) {
            (Ok(numbers), Some(stage)) if Self { numbers, stage }.to_string() == text => Ok(Self { numbers, stage }),
            _ => bail!(
                "{text:?} is no version that all registries take: give X.Y.Z, X.Y.Z-alpha.N, X.Y.Z-beta.N or X.Y.Z-rc.N"
            ),
        }
    }
}

/// Digits alone: std takes a sign, too.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        match self.stage {
            Stage::Alpha(n) => write!(f, "-alpha.{n}"),
            Stage::Beta(n) => write!(f, "-beta.{n}"),
            Stage::Candidate(n) => write!(f, "-rc.{n}"),
            Stage::Final => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().expect("a version")
    }

    #[test]
    fn versions_have_the_order_of_releases() {
        let ordered = ["0.1.0-alpha.1", "0.1.0-alpha.2", "0.1.0-beta.1", "0.1.0-rc.9", "0.1.0-rc.10", "0.1.0", "0.1.1"];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert!(version("0.9.9") < version("0.10.0") && version("0.10.0") < version("1.0.0-rc.1"));
    }

    #[test]
    fn what_some_registry_refuses_is_no_version() {
        for text in ["", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.+3", "1.2.3-rc", "1.2.3-rc.", "1.2.3-rc.01"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
        for text in ["1.2.3-dev.1", "1.2.3-rc1", "1.2.3-rc.1.2", "1.2.3+build", "1.2.3 ", "1.2.-3", "1.2.3-"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn work_goes_on_towards_the_next_minor() {
        assert_eq!(version("0.1.0").next(), version("0.2.0"));
        assert_eq!(version("1.4.2").next(), version("1.5.0"));
        assert_eq!(version("0.2.0-rc.1").next(), version("0.2.0"));
    }
}
