"""OpenAI's two APIs through its SDK: Responses for OpenAI itself, Chat Completions for the many who imitate it.

Each is a package of its own: a session that uses one does not load the other.
"""
