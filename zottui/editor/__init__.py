"""Where prompts are written: the text and its keys, what is pasted, completion, history, and drafts that survive."""
