#!/bin/sh
# Runs a command with a Redis or Valkey on a port of this machine, whose URL is in TRICORN_TEST_STORE: for tests in a root
# that has none. Where there is none at all the command runs without.
set -eu

program=$(command -v valkey-server || command -v redis-server || true)
unpacked=$(dirname "$0")/../target/valkey/valkey-server
if [ -z "$program" ] && [ -x "$unpacked" ]; then program=$unpacked; fi
if [ -z "$program" ]; then exec "$@"; fi

folder=$(mktemp -d)
store=
end() {
    [ -z "$store" ] || kill "$store" 2>/dev/null || true
    rm -rf "$folder"
}
trap end EXIT

attempt=0
while [ "$attempt" -lt 5 ]; do
    attempt=$((attempt + 1))
    port=$((20000 + ($$ * 7 + attempt * 101) % 10000))
    "$program" --port "$port" --bind 127.0.0.1 --save "" --appendonly no --dir "$folder" >"$folder/log" 2>&1 &
    store=$!
    waited=0
    while [ "$waited" -lt 100 ] && kill -0 "$store" 2>/dev/null; do
        if grep -q "Ready to accept connections" "$folder/log"; then
            TRICORN_TEST_STORE=redis://127.0.0.1:$port
            export TRICORN_TEST_STORE
            break 2
        fi
        waited=$((waited + 1))
        sleep 0.1
    done
    kill "$store" 2>/dev/null || true
    store=
done

status=0
"$@" || status=$?
exit "$status"
