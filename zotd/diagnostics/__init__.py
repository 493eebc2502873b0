"""Asks language servers about files that sessions have edited, so that new errors come with the result of the edit.

    edit, write ──> servers ──> server (one for each root and program) ──> client ──> connection ──> the program, in a jail
                                   └── error_book: which errors are new

Nothing of this is loaded before the first edit in a trusted workspace (`docs/diagnostics.md`).
"""
