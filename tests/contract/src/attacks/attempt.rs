//! One attack: its requests, byte by byte as the data has them, and what came back.

use super::file::Sent;
use crate::Outcome;
use crate::pattern::{self, Captures, MODERN, Strictness, shorten};
use crate::replay::outgoing::{Outgoing, complete, headers};
use crate::wire::http::{Connection, Endpoint, Exchange, Head, Request};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Answer to an attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// 0: nothing.
    status: u16,
    head: Head,
    json: Value,
    /// All of it, to look for what must not be in it.
    pub(super) text: String,
}

/// The requests of one attack.
pub(super) struct Attempt<'a> {
    pub(super) endpoint: &'a Endpoint,
    /// In somebody else's HTTP server.
    mounted: bool,
    pub(super) limit: Duration,
    pub(super) captures: Captures,
    /// Streams that stay open.
    streams: Vec<Exchange>,
    last: Option<(Answer, Map<String, Value>)>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(endpoint: &'a Endpoint, mounted: bool, limit: Duration, captures: Captures) -> Self {
        Self { endpoint, mounted, limit, captures, streams: Vec::new(), last: None }
    }

    /// Sends one and looks at what comes back.
    pub(super) fn send(&mut self, sent: &Sent) -> Outcome<Answer> {
        let params = self.params(sent)?;
        let request = self.request(sent, &params)?;
        let answer = self.exchange(&request, sent.stream.as_deref())?;
        let looked = self.look(sent, &answer).map_err(|reason| {
            let Answer { status, head, text, .. } = &answer;
            let challenge = head.get("www-authenticate").unwrap_or("no challenge");
            format!("{reason}\n{status}, {challenge}, {}", shorten(text))
        });
        self.last = Some((answer.clone(), params));
        looked.map(|()| answer)
    }

    fn params(&self, sent: &Sent) -> Outcome<Map<String, Value>> {
        let Some(content) = &sent.reply else {
            let filled = pattern::fill(&Value::Object(sent.params.clone()), &self.captures)?;
            return Ok(filled.as_object().cloned().unwrap_or_default());
        };
        let (answer, params) = self.last.as_ref().ok_or("a reply to nothing")?;
        let mut params = Value::Object(params.clone());
        crate::stateless::asker::answer(&mut params, &answer.json["result"], content)?;
        Ok(params.as_object().cloned().unwrap_or_default())
    }

    fn request(&self, sent: &Sent, params: &Map<String, Value>) -> Outcome<Request> {
        let filled = |text: &str| pattern::fill_text(text, &self.captures);
        let revision = sent.revision.as_deref().unwrap_or(MODERN);
        let mut all = Vec::new();
        let mut body = sent.body.as_deref().map(filled).transpose()?.map(String::into_bytes);
        if let Some(method) = &sent.method {
            let mut message = json!({"id": 1, "method": method, "params": params});
            if method.starts_with("notifications/") {
                message.as_object_mut().map(|members| members.shift_remove("id"));
            }
            if revision == MODERN
                && let Some(able) = &sent.capabilities
            {
                message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able.clone();
            }
            complete(&mut message, revision == MODERN);
            let session = sent.session.as_deref().map(filled).transpose()?;
            let version = (method != "initialize").then_some(revision);
            let outgoing = Outgoing { bytes: message.to_string().into_bytes(), value: Some(message) };
            all = headers(&outgoing, revision, session.as_deref(), version);
            body.get_or_insert(outgoing.bytes);
        } else if let Some(session) = &sent.session {
            all.push(("Mcp-Session-Id".into(), filled(session)?));
        }
        if let Some(token) = &sent.token {
            all.push(("Authorization".into(), filled(&format!("Bearer ${{{token}}}"))?));
        }
        for (name, value) in &sent.headers {
            // What is said here is not said by anything above.
            if ["content-type", "accept"].contains(&name.to_ascii_lowercase().as_str()) {
                all.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            }
            all.push((name.clone(), filled(value)?));
        }
        let mut path = sent.target.as_deref().map_or_else(|| Ok(self.endpoint.path.clone()), filled)?;
        if path.starts_with('?') {
            // What a mounted server says of itself is relative to the URL that its host gives it.
            path.insert_str(0, &self.endpoint.path);
        }
        Ok(Request { method: sent.verb.clone(), path, headers: all, body })
    }

    /// `stays`: the name for the data of a stream's first event, if the stream is to stay open.
    fn exchange(&mut self, request: &Request, stays: Option<&str>) -> Outcome<Answer> {
        let connection = Connection::open(self.endpoint)?;
        let mut exchange = Exchange::start(connection, request, &self.endpoint.authority)?;
        let head = match exchange.head(self.limit) {
            Ok(head) => head.clone(),
            Err(reason) if reason.contains("hung up") => return Ok(Answer::default()),
            Err(reason) => return Err(reason),
        };
        let streams = head.get("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut text = format!("{:?}\n", head.headers);
        let mut json = Value::Null;
        if let (true, Some(name)) = (streams, stays) {
            let event = exchange.next_event(self.limit)?;
            text.push_str(&event.data);
            self.captures.insert(name.to_owned(), event.data.into());
            self.streams.push(exchange);
        } else if streams && request.method == "GET" {
            exchange.close();
        } else if streams {
            while let Some(message) = exchange.next(self.limit)? {
                text.push_str(&message.to_string());
                json = message;
            }
        } else {
            let body = exchange.body(self.limit)?;
            text.push_str(&String::from_utf8_lossy(&body));
            json = serde_json::from_slice(&body).unwrap_or_default();
        }
        Ok(Answer { status: head.status, head, json, text })
    }

    fn look(&mut self, sent: &Sent, answer: &Answer) -> Outcome {
        if self.mounted && sent.mounted_status.contains(&answer.status) {
            // It is not the server that has answered, or not what was sent that it was asked.
            return Ok(());
        }
        if !sent.status.contains(&answer.status) {
            return Err(format!("expected {:?}", sent.status));
        }
        if sent.as_before {
            let (before, _) = self.last.as_ref().ok_or("nothing was before")?;
            if (before.status, &before.json) != (answer.status, &answer.json) {
                return Err(format!("it differs from the one before: {}, {}", before.status, shorten(&before.text)));
            }
        }
        if let Some(pattern) = &sent.head {
            let head: Map<String, Value> =
                answer.head.headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
            pattern::check(pattern, &head.into(), Strictness::Subset, &mut self.captures)?;
        }
        if let Some(pattern) = &sent.answer {
            pattern::check(pattern, &answer.json, Strictness::Subset, &mut self.captures)?;
        }
        let challenges: Vec<&str> = answer
            .head
            .headers
            .iter()
            .filter(|(name, _)| name == "www-authenticate")
            .map(|(_, value)| value.as_str())
            .collect();
        match (&sent.challenge, challenges.as_slice()) {
            (None, _) | (Some(Value::Null), []) => Ok(()),
            (Some(Value::Null), _) => Err("expected no challenge".into()),
            (Some(pattern), [challenge]) => {
                let params = parameters(challenge)?;
                pattern::check(pattern, &params, Strictness::Subset, &mut self.captures)
                    .map_err(|reason| format!("challenge: {reason}"))
            }
            (Some(_), _) => Err(format!("expected one challenge, got {}", challenges.len())),
        }
    }
}

/// The parameters of a bearer challenge.
fn parameters(challenge: &str) -> Outcome<Value> {
    let rest = challenge.strip_prefix("Bearer").ok_or("it is no bearer challenge")?;
    let mut params = Map::new();
    let mut rest = rest.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").ok_or_else(|| format!("not a parameter: {rest:?}"))?;
        let (value, after) = after.split_once('"').ok_or_else(|| format!("not a value: {after:?}"))?;
        if params.insert(name.to_owned(), value.into()).is_some() {
            return Err(format!("{name} is there twice"));
        }
        rest = match after.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if after.is_empty() => after,
            None => return Err(format!("not a comma: {after:?}")),
        };
    }
    Ok(params.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_to_its_end() {
        let read = parameters(r#"Bearer error="invalid_token", scope="a b", resource_metadata="http://h/x,y""#);
        assert_eq!(read, Ok(json!({"error": "invalid_token", "scope": "a b", "resource_metadata": "http://h/x,y"})));
        assert_eq!(parameters("Bearer"), Ok(json!({})));
        for wrong in ["Basic x", "Bearer x", "Bearer a=\"b\" c=\"d\"", "Bearer a=\"b\", a=\"c\""] {
            assert!(parameters(wrong).is_err(), "{wrong}");
        }
    }
}
