# Sourced by the examples' launchers, with $program and $here set: becomes the built program.
#
# With Swift on the machine that is all. With a toolchain that with-swift.sh unpacked, the program needs that
# toolchain's libraries, newer than the machine's own: it is started through their dynamic linker (4 ms, no chroot).
# The library path is an argument, not a variable, so that programs it launches get the machine's libraries.

root=$here/../../..
binary=$root/.build/release/$program
if [ ! -x "$binary" ]; then
    echo "$program is not built; at the repository's root run: cargo xtask setup" >&2
    exit 1
fi
command -v swift > /dev/null && exec "$binary" "$@"

machine=
for cache in "${SWIFT_CACHE:-}" "${XDG_CACHE_HOME:-${HOME:-}/.cache}/swift-toolchain" "$root/target/swift-toolchain"; do
    for ready in "$cache"/*-*/.ready; do
        [ -e "$ready" ] && machine=${ready%/.ready} && break 2
    done
done
[ -n "$machine" ] || exec "$binary" "$@"
libraries=$machine/usr/libexec/swift/lib/swift/linux
for folder in "$machine"/usr/lib/*-linux-gnu; do libraries=$libraries:$folder; done
for loader in "$machine"/usr/lib64/ld-linux-*.so.* "$machine"/usr/lib/ld-linux-*.so.*; do
    [ -e "$loader" ] && exec "$loader" --library-path "$libraries" --argv0 "${argv0:-$program}" "$binary" "$@"
done
echo "$program: no dynamic linker in $machine" >&2
exit 1
