//! The authorization server of `tests/auth/provider`, and the user who sits before the client.

use crate::Outcome;
use crate::launch::{self, Listening};
use crate::pattern::brief;
use crate::wire::http::{Connection, Endpoint, Exchange, Request};
use crate::wire::stdio::Tail;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// A running one.
pub(crate) struct Provider {
    process: Listening,
}

impl Provider {
    pub(crate) fn start() -> Outcome<Self> {
        let program = launch::root()?.join("target/interop/npm-provider/provider.mjs");
        if !program.exists() {
            return Err(format!("{} is not there: cargo xtask interop gets it", program.display()));
        }
        let command = ["node".to_owned(), program.to_string_lossy().into_owned()];
        Ok(Self { process: Listening::start(&command, &[])? })
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.process.url
    }

    /// One of the commands of its README.
    pub(crate) fn control(&self, command: &Value) -> Outcome<Value> {
        control(&self.process.endpoint, command)
    }

    /// Returns the requests that it got since the last call of this.
    pub(crate) fn seen(&self) -> Outcome<Value> {
        self.control(&json!({"seen": {}}))
    }
}

fn control(endpoint: &Endpoint, command: &Value) -> Outcome<Value> {
    let request = Request {
        method: "POST".into(),
        path: "/control".into(),
        headers: vec![("Content-Type".into(), "application/json".into())],
        body: Some(command.to_string().into_bytes()),
    };
    let mut exchange = Exchange::start(Connection::open(endpoint)?, &request, &endpoint.authority)?;
    let said: Value =
        serde_json::from_slice(&exchange.body(LIMIT)?).map_err(|error| format!("the provider: {error}"))?;
    match said.get("error") {
        Some(error) => Err(format!("the provider: {}", brief(error))),
        None => Ok(said),
    }
}

/// Opens whatever address a client says on its standard error, and logs in there.
pub(crate) struct User {
    denies: Arc<AtomicBool>,
    gone: Arc<AtomicBool>,
    /// Faults in the browser.
    trouble: Arc<Mutex<Vec<String>>>,
}

impl User {
    pub(crate) fn before(said: Tail, provider: &Provider) -> Self {
        let user = Self { denies: Arc::default(), gone: Arc::default(), trouble: Arc::default() };
        let (denies, gone, trouble) = (Arc::clone(&user.denies), Arc::clone(&user.gone), Arc::clone(&user.trouble));
        let endpoint = provider.process.endpoint.clone();
        std::thread::spawn(move || {
            let mut opened = BTreeSet::new();
            while !gone.load(Ordering::Acquire) {
                for line in said.lines().into_iter().filter(|line| line.starts_with("http://")) {
                    if !opened.insert(line.clone()) {
                        continue;
                    }
                    let denies = denies.load(Ordering::Acquire);
                    let came = control(&endpoint, &json!({"follow": {"url": line, "denies": denies}}));
                    let problem = match came {
                        Ok(came) if came["status"] == 200 => None,
                        Ok(came) => Some(brief(&came)),
                        Err(reason) => Some(reason),
                    };
                    if let (Some(problem), Ok(mut trouble)) = (problem, trouble.lock()) {
                        trouble.push(problem);
                    }
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        user
    }

    pub(crate) fn denies(&self, denies: bool) {
        self.denies.store(denies, Ordering::Release);
    }

    pub(crate) fn trouble(&self) -> String {
        self.trouble.lock().map(|trouble| trouble.join("\n")).unwrap_or_default()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Release);
    }
}
