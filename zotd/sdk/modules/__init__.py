"""The host program of Python modules: files in `tools/` and `channels/` that import nothing of ours.

    python -m zotd.sdk.modules DIR                  serves DIR/tools/*.py
    python -m zotd.sdk.modules DIR --channel NAME   serves DIR/channels/NAME.py

The program may also be started by its path, `PYTHON …/sdk/modules DIR`, with an interpreter that has no zotd: that of
a project's own environment, or beside a copy of the SDK. It speaks the extension protocol like any other extension.
"""
