//! The page's files, which are part of the program.

/// The policy of the page: nothing but these files, and images of results, which are data.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    media-src data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Page that the link shows for a moment.
pub(super) const OPENED: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <meta http-equiv=\"refresh\" content=\"0;url=./\"><link rel=\"icon\" href=\"data:,\"><title>tricorn inspect</title>\
    <p><a href=\"./\">Open the page</a></p></html>";

macro_rules! files {
    ($($path:literal $kind:literal $file:literal),* $(,)?) => {
        /// A file and its type.
        pub(super) fn find(path: &str) -> Option<(&'static str, &'static str)> {
            match path {
                $($path => Some(($kind, include_str!(concat!("page/", $file)))),)*
                _ => None,
            }
        }
    };
}

files! {
    "" "text/html; charset=utf-8" "index.html",
    "style.css" "text/css; charset=utf-8" "style.css",
    "icon.svg" "image/svg+xml" "icon.svg",
    "main.js" "text/javascript; charset=utf-8" "main.js",
    "server.js" "text/javascript; charset=utf-8" "server.js",
    "dom.js" "text/javascript; charset=utf-8" "dom.js",
    "json.js" "text/javascript; charset=utf-8" "json.js",
    "form.js" "text/javascript; charset=utf-8" "form.js",
    "log.js" "text/javascript; charset=utf-8" "log.js",
    "views.js" "text/javascript; charset=utf-8" "views.js",
    "results.js" "text/javascript; charset=utf-8" "results.js",
    "questions.js" "text/javascript; charset=utf-8" "questions.js",
    "apps.js" "text/javascript; charset=utf-8" "apps.js",
    "panels.js" "text/javascript; charset=utf-8" "panels.js",
}
