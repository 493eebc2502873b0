"""The account of clients on this machine: the socket is open to the daemon's own account only."""

import os
import pwd
from functools import cache


@cache
def local_account() -> str:
    """Return the name of the account, or its number if it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
