//! PINNED.json: where the schemas come from, and that they are what was published.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Pinned {
    sha256: BTreeMap<String, String>,
}

/// Fails unless the JSON files under `<root>/schema` are exactly those of PINNED.json.
pub(crate) fn check(root: &Path) -> Result<()> {
    let folder = root.join("schema");
    let text = fs::read_to_string(folder.join("PINNED.json")).context("schema/PINNED.json")?;
    let pinned: Pinned = serde_json::from_str(&text).context("schema/PINNED.json")?;
    for (name, expected) in &pinned.sha256 {
        let bytes = fs::read(folder.join(name)).with_context(|| format!("schema/{name} is pinned"))?;
        let actual: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        ensure!(actual == *expected, "schema/{name} differs from what is pinned: sha256 {actual}");
    }
    for name in crate::files(&folder, "json")? {
        ensure!(name == "PINNED.json" || pinned.sha256.contains_key(&name), "schema/{name} is not in PINNED.json");
    }
    Ok(())
}
