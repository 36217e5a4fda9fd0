//! The browser of the user.

use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Variable that names browsers, separated as the folders of `PATH` are.
const BROWSER: &str = "BROWSER";
/// Time in which a browser that cannot show the page says so by its status, and the pause between looks.
const START: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// Opens a page in the first browser of `$BROWSER` that takes it, else in that of the system. Waits a second at most.
///
/// # Errors
/// No browser could be started.
pub(crate) fn open(url: &str) -> io::Result<()> {
    match std::env::var(BROWSER).ok().filter(|given| !given.trim().is_empty()) {
        Some(given) => open_with(&given, url),
        None => open::that_detached(url),
    }
}

fn open_with(given: &str, url: &str) -> io::Result<()> {
    let mut last = None;
    for line in given.split(if cfg!(windows) { ';' } else { ':' }).filter(|line| !line.trim().is_empty()) {
        match start(line, url) {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(io::Error::new(error.kind(), format!("{BROWSER}: {}: {error}", line.trim()))),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{BROWSER} names no program"))))
}

/// Starts one, and leaves it to itself.
fn start(line: &str, url: &str) -> io::Result<()> {
    let words = words(line, url);
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command line"));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    began(&mut command.spawn()?)
}

/// Looks for a moment if it ends, which is a failure unless it says otherwise.
fn began(child: &mut Child) -> io::Result<()> {
    let end = Instant::now() + START;
    while Instant::now() < end {
        match child.try_wait()? {
            None => std::thread::sleep(PAUSE),
            Some(status) if status.success() => break,
            Some(status) => return Err(io::Error::other(format!("it ended ({status})"))),
        }
    }
    Ok(())
}

/// The command line, with the URL in the place of `%s`, else at its end.
fn words(line: &str, url: &str) -> Vec<String> {
    // Paths of Windows have backslashes.
    let words = if cfg!(windows) { None } else { shlex::split(line) };
    let mut words = words.unwrap_or_else(|| vec![line.trim().to_owned()]);
    let is_placed = words.iter().any(|word| word.contains("%s"));
    words.iter_mut().for_each(|word| *word = word.replace("%s", url));
    if !is_placed && !words.is_empty() {
        words.push(url.to_owned());
    }
    words
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_url_has_its_place() {
        let url = "https://a.example/?b=c d;e";
        assert_eq!(words("firefox", url), ["firefox", url]);
        assert_eq!(words("'my browser' --new=%s -x", url), ["my browser", &format!("--new={url}"), "-x"]);
    }

    #[test]
    fn the_first_browser_that_takes_the_page_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("opened");
        let given = format!("no-such-browser:false::sh -c 'echo \"$0\" > {}' %s:false", file.display());
        open_with(&given, "https://a.example/?b").unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while !std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
            assert!(Instant::now() < end, "it is not opened");
            std::thread::sleep(PAUSE);
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), "https://a.example/?b\n");
        let error = open_with("no-such-browser:false", "https://a.example").unwrap_err().to_string();
        assert!(error.starts_with("BROWSER: false: it ended"), "{error}");
        assert!(open_with(" : ", "https://a.example").is_err());
    }
}
