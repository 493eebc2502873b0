"""`zot acp`: editors that speak the Agent Client Protocol attach to sessions of the daemon (`docs/editors.md`).

    editor <── NDJSON on stdio ──> editor ── agent ── session ──> zotd.client ──> daemon

An ordinary client: the daemon owns and stores the sessions, which continue when the editor is closed.

    frames    what ACP v1 says, as Structs         prompts     content blocks to a prompt
    updates   events to `session/update`           turns       how a prompt ends
    calls     tool calls as editors show them      options     modes, models, reasoning
    shown_terminals   output as a terminal

These modules have no I/O. `servers`, `files` and `terminals` have the daemon use what the editor brings along: MCP servers, open
files, terminals.
Neither the ACP SDK nor pydantic is imported, because that would delay each start by a second (decision 102).
"""
