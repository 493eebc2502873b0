"""Checkpoints: recorded states of the files of a workspace, and how to return to them.

    recording  ->  a commit in the shadow repository, a git directory in `$ZOT_HOME/checkpoints`
    restoring  ->  record the present state -> plan -> journal on disk -> replace file by file -> remove the journal

The functions block; call them in a thread. `docs/checkpoints.md` says what is recorded and what is not.
"""
