"""How much of a model server's answer is read; a server that sends more is cut off there.

The limits on the content of a reply, the same for all vendors, are in `zotd.core.reply`.
"""

ERROR_BODY_BYTES = 64 * 1024
"""Read of an error's body, decompressed. The longest real one is a request that is sent back; only its message, 400
characters, is shown."""

ERROR_BODY_S = 10.0
"""Longest time to read an error's body; what came until then counts."""

PIECE_BYTES = 64 * 1024
"""Decompressed at once. 64 KiB of gzip can hold 64 MiB; between two pieces the event loop serves others."""

SLICE_BYTES = 16 * 1024
"""Most bytes of a stream that are read at once: 64 KiB of one-byte lines would block the event loop for milliseconds."""

REPLY_BYTES = 64 * 1024 * 1024
"""Read of one reply, decompressed, with everything around its words. 128,000 tokens, the longest reply that a vendor
allows, are 38 MiB where each token comes in an event of 300 bytes."""

EVENT_BYTES = 4 * 1024 * 1024
"""Longest event of a stream. A delta has some hundred bytes; the largest real event, a tool call whose arguments a
server sends in one piece, is a file that the model wrote."""

WHOLE_BYTES = 8 * 1024 * 1024
"""Longest reply that comes as one JSON document instead of a stream."""

REPLY_S = 2 * 3600.0
"""Longest time for one reply. 128,000 tokens at 20 tokens per second take 1.8 h; a stream that only sends pings for
longer would keep its run for ever."""

RETRY_AFTER_S = 24 * 3600.0
"""Longest wait that is taken from a server's `Retry-After`; a longer one counts as this."""
