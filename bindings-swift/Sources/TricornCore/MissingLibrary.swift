#if TRICORN_LIBRARY_NOT_FOUND
// swift-format-ignore
#warning("libtricorn_swift.a, the Rust half of Tricorn, is in no folder of LIBRARY_PATH: linking fails unless -Xlinker -L<folder> names its folder. Build it in a checkout of the same version by `cargo build --release -p tricorn-swift`, and set LIBRARY_PATH to its target/release")
#endif
