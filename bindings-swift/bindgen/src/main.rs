//! `tricorn-bindgen`: UniFFI's Swift generator, at the version the library is built with.

fn main() {
    uniffi::uniffi_bindgen_swift();
}
