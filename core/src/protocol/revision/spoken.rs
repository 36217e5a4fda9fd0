//! Revisions that a side speaks, by its option `revision`.

use super::{Era, Revision};
use crate::error::{Error, Result};

/// All of them, those of an era (`legacy`, `modern`), or one by its name, oldest first.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) that names the `side`'s option and what it may be.
pub(crate) fn spoken(side: &str, option: Option<&str>) -> Result<Vec<Revision>> {
    let of = |era: Era| Revision::ALL.into_iter().filter(|r| r.era() == era).collect();
    Ok(match option {
        None => Revision::ALL.to_vec(),
        Some("legacy") => of(Era::Legacy),
        Some("modern") => of(Era::Modern),
        Some(name) => match Revision::parse(name) {
            Some(revision) => vec![revision],
            None => {
                let known: Vec<_> = Revision::ALL.iter().map(|r| r.as_str()).collect();
                let message = format!(
                    "{side} option \"revision\": expected one of {}, \"legacy\" or \"modern\", got {name:?}",
                    known.join(", ")
                );
                return Err(Error::misuse(message));
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_an_era_or_all() {
        let count = |option| spoken("server", option).map(|all| all.len());
        assert_eq!(count(None).ok(), Some(Revision::ALL.len()));
        assert_eq!(count(Some("2025-06-18")).ok(), Some(1));
        let (legacy, modern) = (count(Some("legacy")).unwrap_or(0), count(Some("modern")).unwrap_or(0));
        assert!(legacy > 1 && modern > 0 && legacy + modern == Revision::ALL.len());
        let error = spoken("server", Some("2020-01-01")).expect_err("unknown");
        assert!(error.message().contains("server option \"revision\": expected one of 2024-11-05"), "{error}");
    }
}
