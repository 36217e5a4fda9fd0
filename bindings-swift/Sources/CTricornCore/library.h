// Says in plain words what the linker would say in others.
#ifdef TRICORN_IN_CHECKOUT
#if !__has_include("../../../target/release/libtricorn_swift.a")
#error "The Rust half of Tricorn is not built yet. At the repository's root run: cargo build --release -p tricorn-swift"
#endif
#endif
