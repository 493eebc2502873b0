#!/bin/sh
# An extension in shell: says hello, offers the command /hello, and answers until the host is done with it.

echo '{"type":"hello","name":"hello","version":"1.0.0","capabilities":["commands"]}'
echo '{"type":"register_command","name":"hello","description":"have the model greet somebody"}'
echo '{"type":"ready"}'

while IFS= read -r frame; do
    # jq builds the answer too: text put together by hand breaks at the first quote in a name.
    case $(printf '%s\n' "$frame" | jq -r .type) in
    command_invoked)
        printf '%s\n' "$frame" | jq -c '{type: "command_response", id, action: "prompt",
            prompt: "Greet \(if .args == "" then "me" else .args end) in one short sentence."}'
        ;;
    shutdown)
        echo '{"type":"shutdown_ack"}'
        exit
        ;;
    esac
done
