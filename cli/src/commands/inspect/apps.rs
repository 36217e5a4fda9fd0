//! User interfaces of tools (MCP Apps): HTML of the server, served to a frame that is kept apart from the page.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tricorn::apps::MIME_TYPE;

/// User interfaces that are kept, and the longest one in bytes.
const MOST: usize = 16;
const LONGEST: usize = 8 << 20;
/// Origins of one kind that are let through.
const ORIGINS: usize = 32;

/// One user interface.
pub(super) struct App {
    html: String,
    origins: Origins,
}

/// Origins that it would like to reach, as its resource declares them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Origins {
    connect: Vec<String>,
    resource: Vec<String>,
    frame: Vec<String>,
    base: Vec<String>,
}

/// An app, as the page is told of it.
#[derive(Serialize)]
pub(super) struct Opened {
    app: u64,
    origins: Origins,
    #[serde(rename = "prefersBorder")]
    prefers_border: Option<bool>,
}

/// Those that were opened last.
#[derive(Default)]
pub(super) struct Apps(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    kept: VecDeque<(u64, Arc<App>)>,
}

impl Apps {
    /// Keeps the one among the contents of a resource.
    ///
    /// # Errors
    /// There is none, or it is too long.
    pub(super) fn open(&self, contents: &[Value]) -> Result<Opened, String> {
        let is_app = |entry: &&Value| {
            let mime = entry.get("mimeType").and_then(Value::as_str).unwrap_or_default();
            mime.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/html"))
        };
        let entry = contents.iter().find(is_app).ok_or_else(|| format!("it has no content of the type {MIME_TYPE}"))?;
        let html = match (entry.get("text"), entry.get("blob")) {
            (Some(Value::String(text)), _) => text.clone(),
            (_, Some(Value::String(blob))) => {
                use base64::Engine as _;
                let bytes =
                    base64::engine::general_purpose::STANDARD.decode(blob).map_err(|error| error.to_string())?;
                String::from_utf8(bytes).map_err(|error| error.to_string())?
            }
            _ => return Err("it has neither text nor blob".to_owned()),
        };
        if html.len() > LONGEST {
            return Err(format!("it has {} bytes, and {LONGEST} at most are shown", html.len()));
        }
        let ui = entry.get("_meta").and_then(|meta| meta.get("ui"));
        let origins = Origins::of(ui.and_then(|ui| ui.get("csp")));
        let prefers_border = ui.and_then(|ui| ui.get("prefersBorder")).and_then(Value::as_bool);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.next += 1;
        let number = state.next;
        if state.kept.len() >= MOST {
            state.kept.pop_front();
        }
        state.kept.push_back((number, Arc::new(App { html, origins: origins.clone() })));
        Ok(Opened { app: number, origins, prefers_border })
    }

    pub(super) fn get(&self, number: u64) -> Option<Arc<App>> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.kept.iter().find(|(known, _)| *known == number).map(|(_, app)| app.clone())
    }
}

impl App {
    pub(super) fn html(&self) -> &str {
        &self.html
    }

    /// The policy of its frame: without an origin of its own, nobody's page but `page`'s may show it, and it reaches nothing
    /// unless `reaches` lets it have what it declares.
    pub(super) fn policy(&self, page: &str, reaches: bool) -> String {
        let none = Origins::default();
        let origins = if reaches { &self.origins } else { &none };
        let list = |own: &str, origins: &[String]| match (own, origins) {
            ("", []) => "'none'".to_owned(),
            (own, origins) => [own]
                .into_iter()
                .filter(|own| !own.is_empty())
                .map(str::to_owned)
                .chain(origins.iter().cloned())
                .collect::<Vec<_>>()
                .join(" "),
        };
        let resource = &origins.resource;
        [
            "sandbox allow-scripts allow-forms".to_owned(),
            "default-src 'none'".to_owned(),
            format!("script-src {}", list("'unsafe-inline'", resource)),
            format!("style-src {}", list("'unsafe-inline'", resource)),
            format!("img-src {}", list("data: blob:", resource)),
            format!("font-src {}", list("data:", resource)),
            format!("media-src {}", list("data: blob:", resource)),
            format!("connect-src {}", list("", &origins.connect)),
            format!("frame-src {}", list("", &origins.frame)),
            format!("base-uri {}", list("", &origins.base)),
            "form-action 'none'".to_owned(),
            format!("frame-ancestors {page}"),
        ]
        .join("; ")
    }
}

impl Origins {
    fn of(csp: Option<&Value>) -> Self {
        let list = |name: &str| {
            let given = csp.and_then(|csp| csp.get(name)?.as_array()).into_iter().flatten();
            let origins = given.filter_map(Value::as_str).filter(|origin| is_origin(origin));
            origins.take(ORIGINS).map(str::to_owned).collect()
        };
        Self {
            connect: list("connectDomains"),
            resource: list("resourceDomains"),
            frame: list("frameDomains"),
            base: list("baseUriDomains"),
        }
    }
}

/// `https://example.com`, `wss://*.example.com:8443`; nothing that ends a directive or begins another source.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let host = host.strip_prefix("*.").unwrap_or(host);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.:".contains(c);
    matches!(scheme, "https" | "http" | "wss" | "ws") && !host.is_empty() && host.len() < 254 && host.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_reaches_nothing_unless_it_is_let() {
        let apps = Apps::default();
        let entry = json!({"mimeType": MIME_TYPE, "text": "<p>", "_meta": {"ui": {"csp": {
            "connectDomains": ["https://api.example.com", "https://x; script-src *", "javascript://x", "*", "'self'"],
            "resourceDomains": ["https://*.example.com"],
        }}}});
        let opened = apps.open(&[entry]).expect("an app");
        assert_eq!(opened.origins.connect, ["https://api.example.com"]);
        let app = apps.get(opened.app).expect("kept");
        let policy = app.policy("http://127.0.0.1:1", false);
        assert!(policy.contains("connect-src 'none'") && policy.starts_with("sandbox allow-scripts allow-forms; "));
        assert!(!policy.contains("example.com") && !policy.contains("same-origin"));
        let policy = app.policy("http://127.0.0.1:1", true);
        assert!(policy.contains("connect-src https://api.example.com;"), "{policy}");
        assert!(policy.contains("script-src 'unsafe-inline' https://*.example.com;"), "{policy}");
    }

    #[test]
    fn the_last_ones_are_kept() {
        let apps = Apps::default();
        let entry = json!({"mimeType": "text/html", "text": ""});
        (0..=MOST).for_each(|_| drop(apps.open(std::slice::from_ref(&entry)).expect("an app")));
        assert!(apps.get(1).is_none() && apps.get(2).is_some());
        assert!(apps.open(&[]).is_err());
    }
}
