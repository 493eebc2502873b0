"""`zot acp`: editors that speak the Agent Client Protocol attach to sessions of the daemon (`docs/editors.md`).

    editor <── NDJSON on stdio ──> editor ── agent ── session ──> zotd.client ──> daemon

An ordinary client: the daemon owns and stores the sessions, which continue when the editor is closed.

    jsonrpc   lines to messages and back           prompts     content blocks to a prompt
    frames    what ACP v1 says, as Structs         turns       how a prompt ends
    updates   events to `session/update`           options     modes, models, reasoning
    calls     tool calls as editors show them     shown_terminals   output as a terminal

These modules have no I/O. `servers`, `files` and `terminals` have the daemon use what the editor brings along: MCP servers, open
files, terminals.
Neither the ACP SDK nor pydantic is imported, because that would delay each start by a second (decision 102).
"""
