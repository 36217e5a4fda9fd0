# Runs a client of the suite, `$2` with its arguments, and notes its exit status in the folder `$1`, in a file of the
# scenario's name. A status beyond `$3` seconds is `late`; a client that is killed has none.
notes=$1 program=$2 soft=$3
shift 3
started=$(date +%s)
"$program" "$@"
status=$?
said=$status
[ $(($(date +%s) - started)) -le "$soft" ] || said=late
echo "$said" >> "$notes/$(printf %s "$MCP_CONFORMANCE_SCENARIO" | tr / _)"
exit $status
