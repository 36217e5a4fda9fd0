fn main() {
    xtask_gen_types::run(std::path::Path::new("."), std::env::args().nth(1).is_some()).unwrap()
}
