"""What is kept on disk: the SQLite journal and the credentials."""
