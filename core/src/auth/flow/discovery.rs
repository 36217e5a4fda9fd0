//! Discovery of the authorization server.

use std::collections::VecDeque;

use super::{Flow, State, Step};
use crate::auth::fetch::{Fetch, Fetched, Unfetched, object};
use crate::auth::resource_metadata::{self, ResourceMetadata};
use crate::auth::server_metadata::{self, ServerMetadata};
use crate::auth::url::{Parts, covers, is_safe, is_same_issuer};
use crate::error::shown_url;

const RESOURCE: &str = "resource metadata";
const SERVER: &str = "authorization server metadata";
/// The most authorization servers of one list that are asked in vain.
const MAX_OTHERS: usize = 4;

impl Flow {
    /// The value of a parameter of the first challenge that has it.
    pub(super) fn challenged(&self, name: &str) -> Option<&str> {
        let own = |challenge: &&crate::auth::challenge::Challenge| challenge.is("Bearer") || challenge.is("DPoP");
        self.given.challenges.iter().filter(own).find_map(|challenge| challenge.get(name)).filter(|v| !v.is_empty())
    }

    /// Returns the metadata URL that the server names, which some write in the wrong quotes or relative to their own.
    fn named(&self) -> Option<String> {
        let named = self.challenged("resource_metadata")?;
        let named = named.strip_prefix('\'').and_then(|named| named.strip_suffix('\'')).unwrap_or(named).trim();
        let base = self.given.server_url.split('#').next().unwrap_or_default();
        let resolved = fluent_uri::UriRef::parse(named)
            .ok()
            .and_then(|named| Some(named.resolve_against(&fluent_uri::Uri::parse(base).ok()?).ok()?.into_string()));
        // An absolute one stays as it came.
        Some(if Parts::of(named).is_some() { named.to_owned() } else { resolved.unwrap_or_else(|| named.to_owned()) })
            .filter(|named| !named.is_empty())
    }

    pub(super) fn discover(&mut self) -> Step {
        let named = self.named();
        self.named_metadata = named.is_some();
        let mut ladder: VecDeque<String> = VecDeque::new();
        ladder.extend(named);
        // Where it was before: nothing may name it now.
        ladder.extend(self.given.stored.as_ref().and_then(|stored| stored.resource_metadata.clone()));
        if ladder.len() == 2 && ladder[0] == ladder[1] {
            ladder.pop_back();
        }
        for url in resource_metadata::well_known(&self.given.server_url) {
            if !ladder.contains(&url) {
                ladder.push_back(url);
            }
        }
        self.missed.clear();
        self.next_resource(ladder)
    }

    fn next_resource(&mut self, mut left: VecDeque<String>) -> Step {
        if let Some(asked) = left.pop_front() {
            return self.fetch(RESOURCE, Fetch::get(&asked), State::Resource { asked, left });
        }
        if let Some(issuer) = self.given.auth.issuer.clone() {
            self.trace.decided("no metadata: the given issuer is asked");
            let url = self.given.server_url.split('#').next().unwrap_or_default();
            self.identifier = Some(url.to_owned());
            return self.ask_server(issuer);
        }
        if self.named_metadata {
            let why = format!("the server names its metadata, but there is none: {}", self.missed.join("; "));
            let url = self.given.server_url.clone();
            return self.failed("finding the authorization server", Some(&url), &why);
        }
        self.ask_origin()
    }

    pub(super) fn resource_fetched(
        &mut self,
        asked: String,
        left: VecDeque<String>,
        outcome: Result<Fetched, Unfetched>,
    ) -> Step {
        let remembered = self.given.stored.as_ref().and_then(|stored| stored.resource_metadata.as_ref());
        let is_named = self.named().as_deref() == Some(&*asked);
        let is_hint = remembered == Some(&asked) && !is_named;
        let fetched = match outcome {
            // Only what is remembered says that there ever was something: there are better places.
            Err(unfetched) if is_hint || unfetched.answered => Ok(Err(unfetched.why)),
            // The server may name a broken address where the well-known place is not.
            Ok(fetched) if (is_hint || is_named) && (fetched.status >= 500 || fetched.status == 429) => {
                Ok(Err(format!("HTTP {}", fetched.status)))
            }
            outcome => self.document("the resource's metadata", &asked, outcome).map(Ok),
        };
        let fetched = match fetched {
            Ok(Ok(fetched)) => fetched,
            Ok(Err(why)) => {
                self.trace.decided(&why);
                self.missed.push(format!("{}: {why}", shown_url(&asked)));
                return self.next_resource(left);
            }
            Err(failed) => return failed,
        };
        let found = match fetched.status {
            200 => object::<ResourceMetadata>(&fetched.body).map_err(|e| format!("no metadata ({e})")),
            status => Err(format!("HTTP {status}")),
        };
        match found {
            Ok(metadata) => self.with_resource(&asked, metadata),
            Err(why) => {
                self.trace.decided(&why);
                self.missed.push(format!("{}: {why}", shown_url(&asked)));
                self.next_resource(left)
            }
        }
    }

    fn with_resource(&mut self, asked: &str, metadata: ResourceMetadata) -> Step {
        let server = self.given.server_url.clone();
        if metadata.resource.contains('#') {
            let why = format!("its resource is {}, expected a URL without a fragment", shown_url(&metadata.resource));
            return self.failed("the resource's metadata", Some(asked), &why);
        }
        // RFC 9728 §3.3: otherwise somebody could get tokens for another's resource.
        if !covers(&metadata.resource, &server) {
            let why = format!(
                "it is about the resource {}, which {} does not belong to: the server has to name itself",
                shown_url(&metadata.resource),
                shown_url(&server)
            );
            return self.failed("the resource's metadata", Some(asked), &why);
        }
        self.identifier = Some(metadata.resource.clone());
        self.resource_metadata = Some(asked.to_owned());
        let listed = &metadata.authorization_servers;
        let lists = |own: &str| listed.iter().any(|issuer| is_same_issuer(issuer, own));
        if let Some(own) = self.given.auth.issuer.as_ref().filter(|own| !listed.is_empty() && !lists(own)) {
            let named: Vec<_> = listed.iter().take(3).map(|issuer| shown_url(issuer)).collect();
            let why = format!(
                "its authorization server is {}, and the option \"issuer\" is {}: give the one that is meant",
                named.join(" or "),
                shown_url(own)
            );
            return self.failed("the resource's metadata", Some(asked), &why);
        }
        // The one that is known already, where there is a choice.
        let known = [self.given.auth.issuer.as_ref(), self.given.stored.as_ref().map(|stored| &stored.issuer)];
        let issuer = known.into_iter().flatten().find(|own| lists(own)).cloned();
        // Where nothing is known the next one will do as well. A client_id belongs to one of them.
        if issuer.is_none() && self.given.auth.client_id.is_none() {
            self.others = listed.iter().skip(1).filter(|issuer| is_safe(issuer)).take(MAX_OTHERS).cloned().collect();
        }
        let issuer = issuer.or_else(|| listed.first().cloned());
        self.resource = Some(metadata);
        match issuer.or_else(|| self.given.auth.issuer.clone()) {
            Some(issuer) if !is_safe(&issuer) => {
                let why = format!("its authorization server is {}, expected an https URL", shown_url(&issuer));
                self.failed("the resource's metadata", Some(asked), &why)
            }
            Some(issuer) => {
                self.trace.decided(&format!("the authorization server is {}", shown_url(&issuer)));
                self.ask_server(issuer)
            }
            None => {
                self.trace.decided("\"authorization_servers\": missing: the server's own origin is asked");
                self.ask_origin()
            }
        }
    }

    fn ask_server(&mut self, issuer: String) -> Step {
        let ladder = server_metadata::well_known(&issuer).into();
        self.issuer = issuer;
        self.missed.clear();
        self.next_server(ladder)
    }

    fn next_server(&mut self, mut left: VecDeque<String>) -> Step {
        if let Some(asked) = left.pop_front() {
            return self.fetch(SERVER, Fetch::get(&asked), State::Server { asked, left });
        }
        let (missed, issuer) = (self.missed.join("; "), self.issuer.clone());
        if self.at_origin {
            let url = self.given.server_url.clone();
            let nameless = match &self.resource_metadata {
                Some(asked) => format!("\"authorization_servers\": missing in the metadata at {}", shown_url(asked)),
                None => "the server has no protected-resource metadata, which its revision needs".to_owned(),
            };
            let why = format!("{nameless}, and its own origin is none: {missed}");
            return self.failed("finding the authorization server", Some(&url), &why);
        }
        let why = format!("there is none to be used: {missed}");
        self.next_issuer(&why)
            .unwrap_or_else(|| self.failed("the metadata of the authorization server", Some(&issuer), &why))
    }

    /// The server takes tokens of several.
    fn next_issuer(&mut self, why: &str) -> Option<Step> {
        let next = self.others.pop_front()?;
        let note = format!(
            "the authorization server {} is of no use ({why}): {} is asked, which the server lists, too",
            shown_url(&self.issuer),
            shown_url(&next)
        );
        self.trace.decided(&note);
        self.notes.push(note);
        Some(self.ask_server(next))
    }

    pub(super) fn server_fetched(
        &mut self,
        asked: String,
        left: VecDeque<String>,
        outcome: Result<Fetched, Unfetched>,
    ) -> Step {
        let found = match outcome {
            Ok(fetched) => {
                self.trace.answered(fetched.status);
                match fetched.status {
                    200 => ServerMetadata::parse(&fetched.body, Some(&self.issuer)),
                    status => Err(format!("HTTP {status}")),
                }
            }
            Err(unfetched) if unfetched.answered => Err(unfetched.why),
            Err(Unfetched { why, .. }) => {
                let failed = |flow: &mut Self| flow.failed("the authorization server's metadata", Some(&asked), &why);
                return self.next_issuer(&why).unwrap_or_else(|| failed(self));
            }
        };
        match found {
            Ok(metadata) => {
                self.trace.decided("used");
                self.metadata = Some(metadata);
                self.known_server()
            }
            Err(why) => {
                self.trace.decided(&why);
                self.missed.push(format!("{}: {why}", shown_url(&asked)));
                self.next_server(left)
            }
        }
    }

    /// 2025-03-26: the MCP server is the authorization server, and its base URL is its origin.
    fn ask_origin(&mut self) -> Step {
        let Some(origin) = Parts::of(&self.given.server_url).map(|parts| parts.origin()) else {
            let url = self.given.server_url.clone();
            return self.failed("finding the authorization server", Some(&url), "it is no http or https URL");
        };
        self.at_origin = true;
        if self.resource.is_some() || self.given.needs_metadata {
            // A later revision: the server is at fault, and nothing is assumed of whoever it may have meant.
            return self.ask_server(origin);
        }
        self.issuer.clone_from(&origin);
        let asked = format!("{origin}/.well-known/oauth-authorization-server");
        let mut fetch = Fetch::get(&asked);
        fetch.headers.extend(self.given.protocol_version.clone().map(|version| ("mcp-protocol-version", version)));
        self.fetch(SERVER, fetch, State::Origin { asked })
    }

    pub(super) fn origin_fetched(&mut self, asked: &str, outcome: Result<Fetched, Unfetched>) -> Step {
        let found = match outcome {
            Err(unfetched) if unfetched.answered => {
                self.trace.decided(&unfetched.why);
                None
            }
            outcome => match self.document("the authorization server's metadata", asked, outcome) {
                Ok(Fetched { status: 200, body, .. }) => ServerMetadata::parse(&body, None).ok(),
                Ok(_) => None,
                Err(failed) => return failed,
            },
        };
        let metadata = match found.filter(|metadata| metadata.token_endpoint.is_some()) {
            // RFC 8414 §3.3: otherwise somebody could send what is meant for another server to endpoints of his own.
            Some(other) if !["", &self.issuer].contains(&other.issuer.trim_end_matches('/')) => {
                let why = format!(
                    "its issuer is {}, expected {}: if that is the right one, give it as the option \"issuer\"",
                    shown_url(&other.issuer),
                    shown_url(&self.issuer)
                );
                return self.failed("the authorization server's metadata", Some(asked), &why);
            }
            Some(metadata) => {
                self.trace.decided("used");
                metadata
            }
            None => {
                self.trace.decided("no metadata: /authorize, /token and /register at the server's origin");
                self.is_assumed = true;
                ServerMetadata::assumed(&self.issuer)
            }
        };
        self.metadata = Some(metadata);
        self.known_server()
    }

    /// Takes the answer to a request for a document that decides what is asked next.
    ///
    /// # Errors
    /// The end, where there is no telling: it may be there the next time, and say something else than what would be
    /// tried instead.
    fn document(
        &mut self,
        step: &str,
        asked: &str,
        outcome: Result<Fetched, Unfetched>,
    ) -> std::result::Result<Fetched, Step> {
        let fetched = outcome.map_err(|unfetched| self.failed(step, Some(asked), &unfetched.why))?;
        self.trace.answered(fetched.status);
        match fetched.status {
            429 | 500.. => Err(self.failed(step, Some(asked), &format!("HTTP {}", fetched.status))),
            _ => Ok(fetched),
        }
    }
}
