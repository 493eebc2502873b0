"""Web Push: messages to browsers that have no connection to the daemon (`docs/decisions/0105-web-push.md`)."""
