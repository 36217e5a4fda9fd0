//! Proxy between clients and processes: nginx with the settings of `docs/guides/many-machines.md`, or one of our own where
//! there is no nginx.

use super::nginx::{self, Nginx};
use super::turns::Turns;
use crate::Outcome;
use crate::wire::http::Endpoint;
use std::fmt;
use std::path::PathBuf;

/// The header in which the proxy says which process answered.
pub(super) const ANSWERED_BY: &str = "x-answered-by";

/// Kind of the proxy.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Nginx {
        program: PathBuf,
        version: String,
    },
    /// Ours, and why it is not nginx.
    Own(Option<String>),
}

impl Kind {
    /// The one that is asked for (`nginx`, `own`); else nginx if it is there.
    pub(super) fn find(asked: Option<&str>) -> Outcome<Self> {
        match (asked, nginx::find()) {
            (Some("own"), _) => Ok(Self::Own(None)),
            (Some("nginx") | None, Ok((program, version))) => Ok(Self::Nginx { program, version }),
            (None, Err(why)) => Ok(Self::Own(Some(why))),
            (Some("nginx"), Err(why)) => Err(why),
            (Some(_), _) => Err("--front is nginx or own".into()),
        }
    }

    /// Returns the reason why the suite's own proxy stands in.
    pub(super) fn why_not_nginx(&self) -> Option<&str> {
        match self {
            Self::Own(why) => why.as_deref(),
            Self::Nginx { .. } => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nginx { version, .. } => formatter.write_str(version),
            Self::Own(_) => formatter.write_str("the suite's own"),
        }
    }
}

/// A proxy that runs, until it is dropped.
pub(super) struct Front {
    /// Addresses that clients connect to. At each the processes take turns on their own.
    pub(super) endpoints: Vec<Endpoint>,
    _running: Running,
}

#[allow(dead_code, reason = "held until the front is dropped")]
enum Running {
    Nginx(Nginx),
    Own(Vec<Turns>),
}

impl Front {
    /// Starts this many endpoints in front of these processes.
    pub(super) fn start(kind: &Kind, processes: &[&Endpoint; 2], count: usize) -> Outcome<Self> {
        let path = &processes[0].path;
        let (addresses, running) = match kind {
            Kind::Nginx { program, .. } => {
                let (nginx, addresses) = Nginx::start(program, processes, count)?;
                (addresses, Running::Nginx(nginx))
            }
            Kind::Own(_) => {
                let upstreams = processes.map(|process| process.authority.clone());
                let turns: Vec<Turns> = (0..count).map(|_| Turns::start(&upstreams)).collect::<Outcome<_>>()?;
                (turns.iter().map(|turns| turns.address).collect(), Running::Own(turns))
            }
        };
        let endpoints = addresses.iter().map(|address| Endpoint { authority: address.to_string(), path: path.clone() });
        Ok(Self { endpoints: endpoints.collect(), _running: running })
    }
}
