"""Answers to a sender who has decided, or wanted to. A channel with buttons shows it where the button was pressed."""

ALLOWED = "Allowed."
DENIED = "Denied."
CHANGED = "Approved with your steps."
OVER = "That question is over."

OUTCOMES = frozenset({ALLOWED, DENIED, OVER})
"""The question needs no buttons any more."""

NOT_ALLOWED = (
    "You may not decide about calls. On the agent's machine, `zotctl approvals` shows pending calls, and "
    "`zotctl channel unpair` and `zotctl channel pair CODE --approve` let you decide here."
)
NOTHING_WAITS = "Nothing waits for a decision."
HOW_TO_CHANGE = (
    "Reply to the plan, or send /change, with the steps as they should be, a line for each: [ ] run the tests"
)
TOO_LONG = "It is too long to be shown, so it can be allowed on the agent's machine only: zotctl approvals."

NOTICES = frozenset({NOT_ALLOWED, NOTHING_WAITS, TOO_LONG, HOW_TO_CHANGE})
"""The question stays as it is."""
