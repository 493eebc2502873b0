"""Starts the project's programs without importing anything: a process that has imported them forks.

An installed command (`client`) is run as the program. It passes its descriptors, arguments, environment and directory to the
template process of `server`, which forks, unless `vetting` refuses; the fork becomes the program (`program`). The command
passes signals on and ends as the program does (`thin`).

    client, thin ── connect ───────────────> server ── fork ──> program
                 <── ready ─────────────────────────────────── program
                 ── request, descriptors ────────────────────> program
                 <── pid ───────────────────────────────────── program
                 ── go, signals ─────────────────────────────> program
                 <── stop the job, run an editor ───────────── program
                 <── how it ended ──────────────────────────── program

Importing the daemon takes 0.4 s and a vendor's SDK 1 to 2 s; a fork that has both takes about 10 ms.

A daemon has template processes of its own, for Python extensions and bridges to MCP servers (`forks`, `fork_server`). Their
forks are children of the daemon (`sibling`), look like programs that were executed (`kernel_view`), and run any script in the
state of a cold start (`main_module`). `python_program` tells which commands can be forked.
"""
