/// Returns true if a client may load an icon's `src` (specification since 2025-11-25, "Icons"): an `https:` URL with a
/// host, or `data:image/…`. Everything else is refused: `javascript:`, `file:`, `ftp:`, `ws:`, and `http:`, which may
/// be read and changed on its way.
///
/// It says nothing of the rest of a client's duties: no credentials, no redirect to another scheme or origin, the
/// server's own origin or a trusted one, a size limit, the type by its first bytes, and no scripts in an SVG.
#[must_use]
pub fn is_safe_icon(src: &str) -> bool {
    if src.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return false;
    }
    let Some((scheme, rest)) = src.split_once(':') else { return false };
    if scheme.eq_ignore_ascii_case("https") {
        return rest
            .strip_prefix("//")
            .is_some_and(|rest| !rest.starts_with(['/', '?', '#', '\\', ':', '@']) && !rest.is_empty());
    }
    let image = rest.get(..6).is_some_and(|kind| kind.eq_ignore_ascii_case("image/"));
    scheme.eq_ignore_ascii_case("data") && image && rest.contains(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_images_in_data_are_safe() {
        for src in
            ["https://example.com/i.png", "HTTPS://h/i", "data:image/png;base64,AA==", "data:image/svg+xml,%3Csvg"]
        {
            assert!(is_safe_icon(src), "{src}");
        }
        for src in [
            "",
            "i.png",
            "//h/i.png",
            "http://h/i",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "ftp://h/i",
            "ws://h",
            "https:",
            "https://",
            "https:///i",
            "https:i",
            "data:text/html,x",
            "data:image/png",
            "data:,x",
            " https://h",
            "java\nscript:x",
            "https://h/a b",
            "blob:https://h/1",
            "vbscript:x",
            "https://@h",
        ] {
            assert!(!is_safe_icon(src), "{src}");
        }
    }
}
