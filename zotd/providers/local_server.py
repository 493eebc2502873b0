"""The program that serves a GGUF model on loopback: llama.cpp's own server, through the package `xllamacpp`.

    python -m zotd.providers.local_server MODEL.gguf [--bare] [--context 8192] [--threads 2]

Reads the API key that it shall ask for from the first line of stdin, prints `{"url": …}` when it listens, and lives
until stdin ends: its parent's death ends it too, however it comes. llama.cpp writes its log around that line.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence

HOST = "127.0.0.1"

THREADS = 4
"""Most threads it computes with: more gain little for a small model and starve everything else (they spin)."""

BARE_TEMPLATE = """
{%- set ns = namespace(system="") %}
{%- if messages[0].role == "system" %}{% set ns.system = messages[0].content %}{% endif %}
{%- if tools %}
    {%- set ns.system = ns.system + "\n\nYou can call these functions:\n<tools>\n" %}
    {%- for tool in tools %}{% set ns.system = ns.system + (tool | tojson) + "\n" %}{% endfor %}
    {%- set ns.system = ns.system + "</tools>" %}
{%- endif %}
{%- if ns.system %}{{- "<|im_start|>system\n" + ns.system + "<|im_end|>\n" }}{% endif %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {{- "<|im_start|>assistant\n" + (message.content or "") }}
        {%- for call in message.tool_calls or [] %}
            {%- set args = call.function.arguments %}
            {{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- (args if args is string else args | tojson) + "}\n</tool_call>" }}
        {%- endfor %}
        {{- "<|im_end|>\n" }}
    {%- elif message.role != "system" or not loop.first %}
        {{- "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- "<|im_start|>assistant\n" }}{% endif %}
"""
"""ChatML with tool calls written as the Hermes models write them, which llama.cpp knows how to read back.

For a model that learns from examples: how to call a tool is not explained, which would only cost tokens. The
template of SmolLM2 itself drops tools without a word.
"""


def main(argv: Sequence[str]) -> None:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser(description="Serve a GGUF model on loopback.")
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("--bare", action="store_true", help="use a template with tools that it does not explain")
    parser.add_argument("--context", type=int, default=8192, help="tokens of context")
    parser.add_argument("--threads", type=int, default=min(THREADS, os.cpu_count() or 1))
    options = parser.parse_args(argv)
    api_key = sys.stdin.readline().strip()
    llama = importlib.import_module("xllamacpp")  # optional, and without type hints
    params = llama.CommonParams()
    params.model.path = options.model
    params.hostnames, params.port = [HOST], 0
    params.api_keys = [api_key]
    params.n_ctx, params.n_parallel = options.context, 1
    params.use_jinja = True
    if options.bare:
        params.chat_template = BARE_TEMPLATE
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    server = llama.Server(params)  # loads the model, and serves in threads of its own as long as it lives
    # In one write, and on a line of its own: the engine's threads log to the same output, a line in two pieces.
    os.write(1, f"\n{json.dumps({'url': server.listening_address})}\n".encode())
    sys.stdin.read()
    os._exit(0)  # its threads have nothing to finish, and joining them takes seconds


if __name__ == "__main__":
    main(sys.argv[1:])
