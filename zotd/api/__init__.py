"""Who may call what: carriers, dispatch, subscribers."""
