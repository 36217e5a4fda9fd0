//! MIME types by extension.

use mime_guess::mime;

/// The type that a name's extension stands for.
pub(super) fn by_name(name: &str) -> Option<String> {
    let extension = name.rsplit('/').next()?.rsplit_once('.')?.1;
    // The table has the transport streams of televisions for these.
    if ["ts", "mts", "cts", "tsx"].iter().any(|script| extension.eq_ignore_ascii_case(script)) {
        return Some("text/typescript".to_owned());
    }
    mime_guess::from_ext(extension).first_raw().map(str::to_owned)
}

/// Returns true if the bytes of such a file are text for people or programs.
pub(super) fn is_textual(name: &str) -> bool {
    const TEXTUAL: [&str; 12] = [
        "json",
        "xml",
        "javascript",
        "ecmascript",
        "typescript",
        "yaml",
        "x-yaml",
        "toml",
        "sql",
        "graphql",
        "x-sh",
        "x-ndjson",
    ];
    let Ok(kind) = name.parse::<mime::Mime>() else { return false };
    kind.type_() == mime::TEXT
        || kind.suffix().is_some_and(|suffix| suffix == mime::JSON || suffix == mime::XML)
        || (kind.type_() == mime::APPLICATION && TEXTUAL.contains(&kind.subtype().as_str()))
}
