"""`zot acp`: editors that speak the Agent Client Protocol attach to sessions of the daemon (`docs/editors.md`).

    editor <── NDJSON on stdio ──> editor ── agent ── session ──> zotd.client ──> daemon

A client like any other: the sessions are the daemon's, stored, and go on when the editor is closed.

    jsonrpc   lines to messages and back           prompts     content blocks to a prompt
    frames    what ACP v1 says, as Structs         turns       how a prompt ends
    updates   events to `session/update`           options     modes, models, reasoning
    calls     tool calls as editors show them

are computed: no I/O. Neither the SDK nor pydantic is loaded, which would cost a second at each start of an editor.
"""
