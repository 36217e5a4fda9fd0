//! Parts of error messages: options and times as the host's language writes them, and a peer's text at a bearable length.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

/// Casing of the names of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Casing {
    /// `client_id`, `max_message_bytes`.
    Snake,
    /// `clientId`, `maxMessageBytes`.
    Camel,
    /// `clientID`, `maxMessageBytes`: as Swift's API design guidelines want it.
    CamelWithAcronyms,
}

/// A [`Casing`].
static CASING: AtomicU8 = AtomicU8::new(Casing::Snake as u8);
/// Times are numbers of milliseconds; seconds otherwise.
static MILLISECONDS: AtomicBool = AtomicBool::new(false);

/// Sets the idiom of this process, which has one host language.
pub(crate) fn set(casing: Casing, milliseconds: bool) {
    CASING.store(casing as u8, Ordering::Relaxed);
    MILLISECONDS.store(milliseconds, Ordering::Relaxed);
}

/// Returns the name of an option as the host's language writes it.
pub(crate) fn named(option: &str) -> Cow<'_, str> {
    let casing = CASING.load(Ordering::Relaxed);
    if casing == Casing::Snake as u8 || !option.contains('_') {
        return Cow::Borrowed(option);
    }
    const ACRONYMS: [&str; 4] = ["id", "ttl", "uri", "url"];
    let mut words = option.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        if casing == Casing::CamelWithAcronyms as u8 && ACRONYMS.contains(&word) {
            name.push_str(&word.to_ascii_uppercase());
            continue;
        }
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        name.push_str(&first.to_uppercase());
        name.push_str(rest);
    }
    Cow::Owned(name)
}

/// Returns the name of an option that the host's language writes in this way.
pub(crate) fn plain(written: &str) -> String {
    let mut name = String::with_capacity(written.len() + 4);
    let mut was_lower = false;
    for letter in written.chars() {
        if letter.is_ascii_uppercase() && was_lower {
            name.push('_');
        }
        was_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Returns the names of options as the host's language writes them, with commas.
pub(crate) fn all(options: &[&str]) -> String {
    options.iter().map(|option| named(option)).collect::<Vec<_>>().join(", ")
}

/// The unit of an option that is a time.
pub(crate) fn unit() -> &'static str {
    if MILLISECONDS.load(Ordering::Relaxed) { "milliseconds" } else { "seconds" }
}

/// Returns a time in the host's unit, as its option has it.
pub(crate) fn number(seconds: f64) -> f64 {
    if !MILLISECONDS.load(Ordering::Relaxed) {
        return seconds;
    }
    // The host divided by 1,000: what that added behind the twelfth digit goes again.
    format!("{:.11e}", seconds * 1e3).parse().unwrap_or(seconds * 1e3)
}

/// Returns a time with its unit: `0.1 s`, `100 ms`.
pub(crate) fn time(time: Duration) -> String {
    let unit = if MILLISECONDS.load(Ordering::Relaxed) { "ms" } else { "s" };
    format!("{} {unit}", number(time.as_secs_f64()))
}

/// At most `most` characters of what a peer sent, for a message.
pub(crate) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((cut, _)) => Cow::Owned(format!("{}…", &text[..cut])),
    }
}

/// A URL for a message: not at any length, and without the user and the password that may be in it.
pub(crate) fn shown_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, _)| url.split_at(scheme.len() + 3));
    let hidden = rest.rsplit_once('@').map(|(_, rest)| format!("{scheme}…@{rest}"));
    format!("{:?}", shortened(hidden.as_deref().unwrap_or(url), 100))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn plain_names_are_of_small_letters() {
        for (written, name) in [
            ("pageSiz", "page_siz"),
            ("clientID", "client_id"),
            ("page_siz", "page_siz"),
            ("_meta", "_meta"),
            ("x", "x"),
        ] {
            assert_eq!(plain(written), name);
        }
    }
}
