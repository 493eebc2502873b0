"""Handlers of the commands, in one module per subject. Each declares as parameters what it needs of the daemon."""

from collections.abc import Callable, Mapping
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
    files,
    history,
    models,
    panels,
    presence,
    push,
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
        "files.offer": files.offer,
        "files.answer": files.answer,
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
        "grant.list": approvals.grants,
        "grant.revoke": approvals.revoke_grants,
        "clear": turns.clear,
        "get_state": turns.get_state,
        "get_messages": turns.get_messages,
        "get_models": turns.get_models,
        "model.show": models.show,
        "model.check": models.check,
        "set_model": turns.set_model,
        "set_reasoning": turns.set_reasoning,
        "queue.list": turns.queue_list,
        "queue.withdraw": turns.queue_withdraw,
        "queue.move": turns.queue_move,
        "session.create": sessions.create,
        "session.list": sessions.listing,
        "session.get": sessions.get,
        "session.history": sessions.history,
        "session.image": history.image,
        "session.rename": sessions.rename,
        "session.configure": sessions.configure,
        "session.export": history.export,
        "session.fork": history.fork,
        "session.import": history.import_file,
        "session.rewind": history.rewind,
        "session.changes": history.changes,
        "session.undo": history.undo,
        "session.redo": history.redo,
        "session.close": sessions.close,
        "session.delete": sessions.delete,
        "session.mcp_servers": sessions.mcp_servers,
        "attach": sessions.attach,
        "detach": sessions.detach,
        "auth.list": credentials.listing,
        "auth.check": credentials.check,
        "auth.login": credentials.login,
        "auth.logout": credentials.logout,
        "auth.begin": credentials.begin,
        "auth.wait": credentials.wait,
        "auth.cancel": credentials.cancel,
    },
)
"""Handlers by command name, of commands that need sessions only; `zot rpc` has no others."""


OF_DAEMON: Mapping[str, Callable[[DaemonContext], object]] = {
    "daemon.status": lambda context: partial(daemon.status, context),
    "daemon.metrics": lambda context: partial(daemon.metrics, context),
    "daemon.compact": lambda context: partial(daemon.compact, context.archive),
    "daemon.reload": lambda context: partial(daemon.reload, context.reload),
    "daemon.shutdown": lambda context: partial(daemon.shutdown, context.stop),
    "complete": lambda context: partial(completion.complete, context.completer),
    "prompt.history": lambda context: partial(completion.prompts, context.archive),
    "workspace.info": lambda context: partial(completion.workspace, context.looks),
    "channel.list": lambda context: partial(channels.listing, context.channels),
    "channel.pair": lambda context: partial(channels.pair, context.channels),
    "channel.unpair": lambda context: partial(channels.unpair, context.channels),
    "token.create": lambda context: partial(tokens.create, context.doors),
    "token.list": lambda context: partial(tokens.listing, context.doors),
    "token.revoke": lambda context: partial(tokens.revoke, context.doors),
    "push.key": lambda context: partial(push.key, context.push),
    "push.subscribe": lambda context: partial(push.subscribe, context.push),
    "push.unsubscribe": lambda context: partial(push.unsubscribe, context.push),
    "push.list": lambda context: partial(push.listing, context.push),
    "push.remove": lambda context: partial(push.remove, context.push),
    "session.search": lambda context: partial(history.search, context.archive),
    "session.tree": lambda context: partial(history.tree, context.archive),
    "presence": lambda context: partial(presence.listing, context.presences),
    "presence.update": lambda context: partial(presence.update, context.presences),
    "usage.report": lambda context: partial(usage.report, context.archive, context.spending),
    "hello": lambda context: partial(daemon.hello, context.epoch),
}
"""The other handlers by command name (`hello` replaces that of `zot rpc`), bound to the parts of the daemon that they need."""


def daemon_handlers(context: DaemonContext) -> Mapping[str, Handler]:
    """Return the handlers of all commands. A command of `wire.api.COMMANDS` without a handler answers `unsupported`."""
    return {**HANDLERS, **{name: cast("Handler", bind(context)) for name, bind in OF_DAEMON.items()}}
