//! The rules of the two formats for what is written here.
//!
//! They are the published schemas' rules for the members that we write, in our own words; members that we do not write are
//! refused. `tests/command/pack.rs` lets the format's own tool judge, too.

use serde_json::Value;

use crate::failure::{FAILED, Failure, Outcome};

/// Manifests of bundles, 0.3: <https://github.com/modelcontextprotocol/mcpb>.
pub(super) const MANIFEST: &str = include_str!("manifest.schema.json");
/// Entries of the registry, 2025-12-11: <https://github.com/modelcontextprotocol/registry>.
pub(super) const SERVER: &str = include_str!("server.schema.json");

/// Refuses a document that its schema refuses, with the first reason.
pub(super) fn check(document: &Value, schema: &str, name: &str) -> Outcome<()> {
    let broken = |error: String| Failure::new(FAILED, format!("the schema of {name}: {error}"));
    let schema: Value = serde_json::from_str(schema).map_err(|error| broken(error.to_string()))?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| broken(error.to_string()))?;
    match validator.iter_errors(document).next() {
        None => Ok(()),
        Some(error) => Err(Failure::misuse(format!("{name}: {}: {error}", error.instance_path()))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_judged() {
        let manifest = json!({
            "manifest_version": "0.3", "name": "a", "version": "1.0.0", "description": "d", "author": {"name": "n"},
            "server": {"type": "node", "entry_point": "a.js", "mcp_config": {"command": "node", "args": ["a.js"]}},
        });
        assert!(check(&manifest, MANIFEST, "x").is_ok());
        let server = json!({"name": "io.github.a/b", "description": "d", "version": "1.0.0",
            "packages": [{"registryType": "mcpb", "identifier": "https://example.com/a.mcpb",
                "fileSha256": "0".repeat(64), "transport": {"type": "stdio"}}]});
        assert!(check(&server, SERVER, "x").is_ok());
        for (document, schema, member, value) in [
            (&manifest, MANIFEST, "manifest_version", json!("9")),
            (&manifest, MANIFEST, "author", json!({})),
            (&manifest, MANIFEST, "homepage", json!("not a URL")),
            (&manifest, MANIFEST, "icons", json!([{"src": "a.png", "size": "any"}])),
            (&manifest, MANIFEST, "strange", json!(1)),
            (&server, SERVER, "name", json!("a")),
            (&server, SERVER, "name", json!("a/b/c")),
            (&server, SERVER, "description", json!("d".repeat(101))),
            (&server, SERVER, "packages", json!([{"registryType": "mcpb", "identifier": "x"}])),
            (&server, SERVER, "remotes", json!([{"type": "streamable-http", "url": "example.com"}])),
        ] {
            let mut wrong = document.clone();
            wrong[member] = value;
            let failure = check(&wrong, schema, "x").unwrap_err();
            assert!(failure.message.starts_with("x: "), "{}", failure.message);
        }
    }
}
