"""Handlers of the commands, in one module per subject. Each declares as parameters what it needs of the daemon."""

from collections.abc import Mapping
from functools import partial
from typing import cast

from zotd.api.context import DaemonContext
from zotd.api.dispatch import Handler
from zotd.api.methods import (
    approvals,
    channels,
    completion,
    credentials,
    daemon,
    extensions,
    history,
    panels,
    presence,
    sessions,
    tokens,
    trust,
    turns,
    usage,
)

# Each handler takes the parameter Struct that the command table names. A type checker cannot follow that through a
# table, so a test compares the two.
HANDLERS: Mapping[str, Handler] = cast(
    "Mapping[str, Handler]",
    {
        "hello": daemon.hello_on_pipes,
        "ping": daemon.ping,
        "subscribe": daemon.subscribe,
        "prompt": turns.prompt,
        "abort": turns.abort,
        "retry": turns.retry,
        "compact": turns.compact,
        "run_command": turns.run_command,
        "shell": turns.shell,
        "panel.key": panels.key,
        "panel.resize": panels.resize,
        "panel.close": panels.close,
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
        "session.rename": sessions.rename,
        "session.configure": sessions.configure,
        "session.export": history.export,
        "session.fork": history.fork,
        "session.import": history.import_file,
        "session.rewind": history.rewind,
        "session.close": sessions.close,
        "session.delete": sessions.delete,
        "attach": sessions.attach,
        "detach": sessions.detach,
        "auth.list": credentials.listing,
        "auth.check": credentials.check,
        "auth.login": credentials.login,
        "auth.logout": credentials.logout,
    },
)
"""Handlers by command name, of commands that need sessions only; `zot rpc` has no others."""


def daemon_handlers(context: DaemonContext) -> Mapping[str, Handler]:
    """Return the handlers of all commands, each with the part of the daemon that it needs.

    A command of `wire.api.COMMANDS` without a handler answers `unsupported`.
    """
    bound = {
        "daemon.status": partial(daemon.status, context),
        "daemon.metrics": partial(daemon.metrics, context),
        "daemon.compact": partial(daemon.compact, context.archive),
        "daemon.reload": partial(daemon.reload, context.reload),
        "daemon.shutdown": partial(daemon.shutdown, context.stop),
        "complete": partial(completion.complete, context.completer),
        "prompt.history": partial(completion.prompts, context.archive),
        "workspace.info": partial(completion.workspace, context.looks),
        "channel.list": partial(channels.listing, context.channels),
        "channel.pair": partial(channels.pair, context.channels),
        "channel.unpair": partial(channels.unpair, context.channels),
        "token.create": partial(tokens.create, context.doors),
        "token.list": partial(tokens.listing, context.doors),
        "token.revoke": partial(tokens.revoke, context.doors),
        "session.search": partial(history.search, context.archive),
        "session.tree": partial(history.tree, context.archive),
        "presence": partial(presence.listing, context.presences),
        "presence.update": partial(presence.update, context.presences),
        "usage.report": partial(usage.report, context.archive, context.spending),
        "hello": partial(daemon.hello, context.epoch),
    }
    return {**HANDLERS, **cast("Mapping[str, Handler]", bound)}
