//! `requestState`: nothing opens that was not sealed, and what was sealed does.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tricorn::request_state(data));
