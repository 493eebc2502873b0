#!/usr/bin/env bash
# Drives `zot rpc` with bash (4.4 or newer) and jq: one prompt in, what happens out.
#
#     zot-rpc.sh [zot rpc flags...] -- PROMPT...
#
# Text and tool calls go to stdout as they come. Exit code: 0 when the run ended normally, 1 when it failed, 2 for
# wrong usage. ZOTCORE_RPC_TOKEN, when set, is sent with `hello`.
set -euo pipefail

flags=()
while (($#)) && [[ $1 != -- ]]; do
    flags+=("$1")
    shift
done
if (($# < 2)); then
    echo "usage: ${0##*/} [zot rpc flags...] -- PROMPT..." >&2
    exit 2
fi
shift # the --
command -v zot >/dev/null || { echo "error: there is no zot on the PATH" >&2; exit 1; }

# Fd 3 writes to its stdin, fd 4 reads its stdout. Not a coproc: bash closes a coproc's pipes when it ends, read or not.
replies=$(mktemp -u)
mkfifo -m 600 "$replies"
exec 3> >(exec zot rpc "${flags[@]}" >"$replies")
zot=$!
exec 4<"$replies"
rm "$replies"

{
    jq -nc '{id: "0", type: "hello"} + if env.ZOTCORE_RPC_TOKEN then {token: env.ZOTCORE_RPC_TOKEN} else {} end'
    jq -nc --arg message "$*" '{id: "1", type: "prompt", $message}'
} >&3 || true # it may have ended already, for a wrong flag: then there is nothing to read below

# Reads frames until `done`. The run went well when its last turn stopped with `end_turn`; some versions say `end`.
show='
def fail: "error: \(.)\n" | halt_error(1);
def line: [.[] | .text // "[\(.mime_type)]"] | join("\n") | split("\n")[0] // "";

foreach (inputs, {type: "eof"}) as $frame ({};
    if $frame.type == "turn_end" then {stop: $frame.stop, error: $frame.error}
    elif $frame.type == "error" then .error = $frame.message
    else . end;
    . as {$stop, $error} | $frame
    | if .type == "text_delta" then .delta
      elif .type == "assistant_message" then if any(.content[]; .type == "text") then "\n" else empty end
      elif .type == "tool_call" then "[call] \(.name) \(.args | tojson)\n"
      elif .type == "tool_result" then "[\(if .is_error then "error" else "result" end)] \(.content | line)\n"
      elif .type == "response" and (.success | not) then .error | fail
      elif .type == "eof" then "zot rpc ended before the run did" | fail
      elif .type != "done" then empty
      elif $stop == "end_turn" or $stop == "end" then halt
      else $error // "the run stopped: \($stop)" | fail end)'
code=0
jq -nj --unbuffered "$show" <&4 || code=$?

exec 3>&- # end of its input: it finishes and exits
wait "$zot" || code=1
exit "$code"
