"""The commands, one module per noun; `HANDLERS` lists them all."""

from collections.abc import Mapping
from typing import cast

from zotd.api.dispatch import Handler
from zotd.api.methods import approvals, channels, daemon, extensions, history, panels, sessions, trust, turns, usage

# Each handler takes the parameter Struct that the command table names, which a type checker cannot follow through
# a table; a test compares the two.
HANDLERS: Mapping[str, Handler] = cast(
    "Mapping[str, Handler]",
    {
        "hello": daemon.hello,
        "ping": daemon.ping,
        "subscribe": daemon.subscribe,
        "daemon.status": daemon.status,
        "daemon.metrics": daemon.metrics,
        "daemon.shutdown": daemon.shutdown,
        "prompt": turns.prompt,
        "abort": turns.abort,
        "compact": turns.compact,
        "run_command": turns.run_command,
        "panel.key": panels.key,
        "panel.resize": panels.resize,
        "panel.close": panels.close,
        "channel.list": channels.listing,
        "channel.pair": channels.pair,
        "channel.unpair": channels.unpair,
        "ext.list": extensions.listing,
        "ext.doctor": extensions.doctor,
        "ext.reload": extensions.reload,
        "ext.logs": extensions.logs,
        "ext.tap": extensions.tap,
        "ext.install": extensions.install,
        "ext.remove": extensions.remove,
        "ext.enable": extensions.enable,
        "ext.disable": extensions.disable,
        "trust.list": trust.listing,
        "trust.grant": trust.grant,
        "trust.revoke": trust.revoke,
        "approval.list": approvals.listing,
        "approve": approvals.approve,
        "set_mode": approvals.set_mode,
        "clear": turns.clear,
        "get_state": turns.get_state,
        "get_messages": turns.get_messages,
        "get_models": turns.get_models,
        "set_model": turns.set_model,
        "set_reasoning": turns.set_reasoning,
        "queue.list": turns.queue_list,
        "queue.withdraw": turns.queue_withdraw,
        "queue.move": turns.queue_move,
        "session.create": sessions.create,
        "session.list": sessions.listing,
        "session.get": sessions.get,
        "session.history": sessions.history,
        "session.search": history.search,
        "session.rename": sessions.rename,
        "session.configure": sessions.configure,
        "session.export": history.export,
        "session.fork": history.fork,
        "session.import": history.import_file,
        "session.rewind": history.rewind,
        "session.tree": history.tree,
        "session.close": sessions.close,
        "session.delete": sessions.delete,
        "attach": sessions.attach,
        "detach": sessions.detach,
        "presence": sessions.presence,
        "usage.report": usage.report,
    },
)
"""Command name to handler. A command of `wire.api.COMMANDS` that is not here answers `unsupported`."""
