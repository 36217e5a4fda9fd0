//! Names that Windows takes for something else than the file of that name.

/// The devices, which every directory has, with any ending and in any case.
const DEVICES: [&str; 8] = ["aux", "con", "conin$", "conout$", "nul", "prn", "clock$", "keybd$"];

/// Returns true if Windows opens the file that a part of a path names, and nothing else: no device, no other stream of
/// a file, no file whose name lacks what the end of this has.
pub(super) fn is_plain(part: &str) -> bool {
    !part.contains(|c: char| c.is_control() || "<>:\"/\\|?*".contains(c))
        && !part.ends_with(['.', ' '])
        && !is_device(part)
}

fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().trim_end_matches(' ').to_lowercase();
    let numbered = |kind: &str| {
        // The digits in superscript count, too.
        stem.strip_prefix(kind).is_some_and(|rest| {
            let mut digits = rest.chars();
            digits.next().is_some_and(|c| c.is_ascii_digit() || "¹²³".contains(c)) && digits.next().is_none()
        })
    };
    DEVICES.contains(&&*stem) || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_streams_and_shortened_names_are_none() {
        for name in [
            "CON",
            "con.txt",
            "nul",
            "NUL .tar.gz",
            "Aux.",
            "COM1",
            "com0.log",
            "LPT9",
            "lpt\u{b2}",
            "CONIN$",
            "a.txt:stream",
            "a:$DATA",
            "C:",
            "a\\b",
            "a.",
            "a ",
            "a*",
            "a?",
            "a\u{1}",
            "..",
            "<a>",
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
        for name in ["a.txt", "console", "com10", "com", "lpt-1", "nulls.txt", ".git", "a b", "ä~1", "x.con", "(a)"] {
            assert!(is_plain(name), "{name:?}");
        }
    }
}
