#!/bin/sh
# Runs index.mts, without a build step, with the first of these that is installed.
case $(node --version 2>/dev/null) in
    v22.1[89].* | v22.[2-9]?.* | v2[4-9].* | v[3-9]?.*) exec node index.mts ;;
esac
command -v bun >/dev/null && exec bun index.mts
command -v deno >/dev/null && exec deno run --allow-all index.mts
command -v tsx >/dev/null && exec tsx index.mts
echo "index.mts needs Node 22.18 or newer, Bun, Deno or tsx, and none of them is in PATH" >&2
exit 1
