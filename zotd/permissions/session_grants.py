"""What was allowed for the rest of a session: rules in its row, which `zotd.permissions.approvals` adds."""

from collections.abc import Sequence

from zotd.core.permissions import PermissionRule
from zotd.ledger.ledger import Ledger
from zotd.wire.errors import Code, CommandError


async def revoke(ledger: Ledger, rules: Sequence[PermissionRule]) -> None:
    """Take these grants back, from the next tool call on.

    Raises CommandError (`not_found`) if the session does not have one of them, and StorageError; nothing is taken back then.
    """
    granted = ledger.row.granted
    unknown = next((rule for rule in rules if rule not in granted), None)
    if unknown is not None:
        sentence = f'this session has no grant for {unknown.tool} "{unknown.match}"; see grant.list'
        raise CommandError(Code.NOT_FOUND, sentence)
    await ledger.write([], durable=True, granted=tuple(rule for rule in granted if rule not in rules))
