//! Doing a step again only when what it was made from has changed.

use crate::place;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Folders that are products, never sources.
const PRODUCTS: [&str; 9] =
    ["target", "node_modules", "dist", ".build", "__pycache__", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache"];

/// A digest of everything a step is made from.
pub(crate) struct Inputs {
    hash: u64,
}

impl Inputs {
    pub(crate) fn new() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325 }
    }

    /// A version, an option, the path of a tool.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.add(text.as_bytes());
        self
    }

    /// A file or a whole folder of sources, by its path from the repository. What is missing counts as empty.
    pub(crate) fn path(mut self, path: &str) -> Result<Self> {
        for file in sources(&place::root().join(path))? {
            let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            self.add(place::short(&file).as_bytes());
            self.add(&bytes);
        }
        Ok(self)
    }

    // FNV-1a: only accidents have to be told apart.
    fn add(&mut self, bytes: &[u8]) {
        let length = bytes.len().to_le_bytes();
        for byte in bytes.iter().chain(&length) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The files below a path, in a stable order, without products.
pub(crate) fn sources(path: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() && !path.is_symlink() {
            for entry in std::fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if !PRODUCTS.contains(&&*name) && !name.ends_with(".so") && !name.ends_with(".node") {
                    open.push(entry.path());
                }
            }
        } else if path.is_file() {
            found.insert(path);
        }
    }
    Ok(found)
}

/// Runs `make` unless it ran for the same inputs before and what it made is still there. Steps that run side by side
/// and need the same wait for the first of them.
pub(crate) fn once(name: &str, inputs: &Inputs, product: &Path, make: impl FnOnce() -> Result<()>) -> Result<()> {
    static MAKING: Mutex<BTreeMap<String, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let this = {
        let mut all = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.to_owned()).or_default().clone()
    };
    let _making = this.lock().unwrap_or_else(PoisonError::into_inner);
    let stamp = place::target("setup").join(name);
    let now = format!("{:016x}\n", inputs.hash);
    if product.exists() && std::fs::read_to_string(&stamp).is_ok_and(|before| before == now) {
        return Ok(());
    }
    let _ = std::fs::remove_file(&stamp);
    make()?;
    std::fs::create_dir_all(place::target("setup"))?;
    std::fs::write(&stamp, now).with_context(|| format!("cannot write {}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_tells_the_parts_apart() {
        let one = Inputs::new().text("ab").text("c").hash;
        let two = Inputs::new().text("a").text("bc").hash;
        assert_ne!(one, two);
        assert_eq!(one, Inputs::new().text("ab").text("c").hash);
    }

    #[test]
    fn side_by_side_makes_once() {
        let name = format!("test-{}", std::process::id());
        let product = place::target("tmp").join(&name);
        let made = std::sync::atomic::AtomicUsize::new(0);
        let started = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    started.wait();
                    once(&name, &Inputs::new(), &product, || {
                        made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        std::fs::create_dir_all(&product)?;
                        std::thread::yield_now();
                        Ok(())
                    })
                    .expect("it is made");
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
        std::fs::remove_dir(&product).expect("the product was made");
        std::fs::remove_file(place::target("setup").join(&name)).expect("the stamp was written");
    }

    #[test]
    fn products_are_no_sources() {
        let files = sources(&place::root().join("xtask")).expect("the crate is readable");
        assert!(files.iter().any(|f| f.ends_with("src/stamp.rs")));
        assert!(!files.iter().any(|f| f.components().any(|c| c.as_os_str() == "target")));
    }
}
