"""tmux for coding agents: the daemon, its client library and its Python SDK. Importing this package loads nothing."""
