"""The prompt editor: text and keys, pasting, completion, history, and drafts that survive a crash."""
