"""The program that serves Python modules: files in `tools/` and `channels/` that import nothing of zot.

    python -m zotd.sdk.modules DIR                  serves DIR/tools/*.py
    python -m zotd.sdk.modules DIR --channel NAME   serves DIR/channels/NAME.py

The program may also be started by its path, `PYTHON …/sdk/modules DIR`, with an interpreter that has no zotd, such as
that of a project's environment. It speaks the extension protocol like any other extension.
"""
