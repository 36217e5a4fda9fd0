//! The packages that were made, as a table: `target/dist/PACKAGES.md`.

use super::matrix::Plan;
use super::published;
use crate::place::Lang;
use crate::{place, process, report, setup, tool};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

const TRYING: Duration = Duration::from_secs(40 * 60);

/// Prints it, and says whether the packages that were tried work.
pub(super) fn print(plans: &[Plan], tried: bool) -> Result<bool> {
    let mut all_work = true;
    let mut runs = Vec::new();
    for plan in plans {
        let said = match plan.tried {
            _ if !tried => "not tried".to_owned(),
            None => "built, not run".to_owned(),
            Some(how) => {
                report::step(format!("using the packages of {}", plan.name));
                match run(plan.name, how.name()) {
                    Ok(said) => said,
                    Err(error) => {
                        all_work = false;
                        report::line(format!("FAIL {}: {error:#}", plan.name));
                        format!("failed ({})", how.name())
                    }
                }
            }
        };
        runs.push((plan.name, said));
    }
    let mut text = String::from("| file | packed | unpacked | module or program |\n|---|--:|--:|--:|\n");
    for (part, path) in published() {
        let (unpacked, module) = unpacked(&path).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let packed = std::fs::metadata(&path)?.len();
        writeln!(text, "| `{part}/{name}` | {} | {} | {} |", size(packed), size(unpacked), size(module))?;
    }
    text.push_str("\n| platform | used |\n|---|---|\n");
    for (platform, said) in runs {
        writeln!(text, "| {platform} | {said} |")?;
    }
    report::clear();
    text.lines().for_each(report::line);
    std::fs::write(place::target("dist/PACKAGES.md"), text)?;
    Ok(all_work)
}

fn size(bytes: u64) -> String {
    if bytes == 0 { "–".into() } else { format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10) }
}

/// Bytes of an archive's files, and of the native module or the program among them.
fn unpacked(path: &Path) -> Option<(u64, u64)> {
    const SIZES: &str = "
import sys, tarfile, zipfile
path = sys.argv[1]
ends = ('.so', '.pyd', '.node', '/tricorn', '/tricorn.exe')
if path.endswith(('.whl', '.zip')):
    sizes = [(one.filename, one.file_size) for one in zipfile.ZipFile(path).infolist()]
elif path.endswith('gz'):
    sizes = [(one.name, one.size) for one in tarfile.open(path)]
else:
    sizes = []
print(sum(size for _, size in sizes), sum(size for name, size in sizes if name.endswith(ends)))
";
    let mut command = tool::command(tool::venv("python"));
    command.args(["-c", SIZES]).arg(path);
    let said = tool::ask(command)?;
    let (all, module) = said.trim().split_once(' ')?;
    Some((all.parse().ok()?, module.parse().ok()?))
}

/// Installs the packages as a user does, and uses them.
fn run(platform: &str, how: &str) -> Result<String> {
    let (python, _) = tool::python().context("no python3 >= 3.10")?;
    let mut command = tool::command(python);
    command.args(["tests/packages/elsewhere.py", how, platform]).arg(place::target("dist"));
    command.arg("--work").arg(place::target("packages").join(how));
    if how == "wine" {
        let wine =
            setup::windows()?.and_then(|windows| windows.wine().unwrap_or_else(|error| Err(format!("{error:#}"))));
        command.arg("--wine").arg(wine.map_err(anyhow::Error::msg)?);
    }
    tool::need(&[Lang::Node])?;
    let done = process::must("elsewhere.py", command, TRYING, &place::log(&format!("dist try {platform}")))?;
    Ok(done.stdout.trim().lines().collect::<Vec<_>>().join("; "))
}
