"""Starts the project's programs without importing anything: a process that has imported them forks.

`thin` is run as the program. It passes its descriptors, arguments, environment and directory to the template process of
`server`, which forks; the fork becomes the program (`program`). `thin` passes signals on and ends as the program does.

    thin ── request, descriptors ──> server ── fork ──> program
         <── pid ────────────────── server
         ── signals ───────────────────────────────────> program
         <── how it ended ───────── server <── waitpid ── program

Importing the daemon takes 0.4 s and a vendor's SDK 1 to 2 s; a fork that has both takes about 10 ms.
"""
