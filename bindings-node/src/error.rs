//! Errors on their way to JavaScript.

/// The `code` of a JavaScript error that carries an engine error; `lib/bridge/errors.ts` looks for it.
pub(crate) const CODE: &str = "TRICORN";

pub(crate) type Result<T> = std::result::Result<T, napi::Error<String>>;

/// Node-API errors hold a code and a text and nothing else, so the whole engine error travels as
/// JSON in the text and `lib/bridge/errors.ts` makes the typed class of it.
pub(crate) fn raise(error: tricorn::Error) -> napi::Error<String> {
    napi::Error::new(CODE.to_owned(), error.to_json().get().to_owned())
}
