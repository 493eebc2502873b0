"""Defines the processes of channels: one for each `$ZOT_HOME/extensions/channels/NAME.py`, and the built-in Telegram.

They run `zotd.sdk.modules` under the daemon's supervision. Each process works in its own private directory,
`$ZOT_HOME/data/py-NAME`, where a channel may store its position.
"""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

import zotd
from zotd import logs
from zotd.channels.channels import FEATURES
from zotd.config import TelegramSection
from zotd.core.ports import StorageError
from zotd.exthost.discovery import Discovered
from zotd.exthost.manifest import NAME, Manifest, ProcessScope, ReloadBy
from zotd.exthost.surroundings import Surroundings
from zotd.paths import make_private_dir
from zotd.store import credentials
from zotd.wire.version import VERSION

log = logging.getLogger(__name__)

CREDENTIALS_FILE = "auth.json"

PACKAGE = Path(zotd.__file__).parent
HOST_PROGRAM = PACKAGE / "sdk" / "modules"

TELEGRAM = "telegram"
"""The built-in channel; a file of this name in the user's directory is not used while it is enabled."""

TOKEN, URL = "TELEGRAM_BOT_TOKEN", "TELEGRAM_API_URL"
"""Variables that only the process of the built-in channel gets."""


class Programs(Struct, frozen=True):
    """Finds channels and defines how they are started."""

    home: Path
    """`$ZOT_HOME`."""
    telegram: TelegramSection
    python: str = sys.executable
    """The interpreter of the user's own channels."""

    def discover(self) -> Discovered:
        """Find the channels to start. Blocks, and creates their private directories."""
        found = Discovered()
        if self.telegram.enabled:
            self._take(found, TELEGRAM, PACKAGE, sys.executable, env=(TOKEN, URL))
        directory = self.home / "extensions"
        for path in sorted((directory / "channels").glob("*.py")):
            # Helper modules of channels.
            if path.name.startswith("_"):
                continue
            if path.stem == TELEGRAM and self.telegram.enabled:
                found.errors[path] = f"{path} is not used: the built-in channel of this name is enabled"
            elif not NAME.fullmatch(f"py-{path.stem}"):
                found.errors[path] = f"{path} is not used: the name of a channel is letters, digits, . _ and -"
            else:
                self._take(found, path.stem, directory, self.python)
        return found

    def surroundings(self, env: Mapping[str, str]) -> Surroundings:
        """Return the surroundings of the processes. Blocks.

        `env` is the daemon's environment without withheld variables. Without a token, the Telegram channel reports that
        when it connects.
        """
        shared = {name: value for name, value in env.items() if name not in {TOKEN, URL}}
        # Only a manifest that names a withheld variable gets it, so other channels do not see the token.
        withheld = {URL: self.telegram.base_url}
        token = env.get(TOKEN) or (self._stored_token() if self.telegram.enabled else None)
        if token:
            # Masked in all logs from now on: the token is part of every URL of the Bot API.
            logs.hide(token)
            withheld[TOKEN] = token
        return Surroundings("", self.home, shared, withheld, version=VERSION, features=FEATURES)

    def _stored_token(self) -> str | None:
        try:
            return credentials.load(self.home / CREDENTIALS_FILE).get(TELEGRAM)
        except StorageError as error:
            log.warning("%s", error)
            return None

    def _take(
        self, found: Discovered, channel: str, directory: Path, python: str, *, env: tuple[str, ...] = ()
    ) -> None:
        name = f"py-{channel}"
        place = self.home / "data" / name
        try:
            make_private_dir(str(place))
        except OSError as error:
            found.errors[place] = f"{place} cannot be made: {error.strerror}"
            return
        argv = (python, str(HOST_PROGRAM), str(directory), "--channel", channel)
        found.manifests.append(
            Manifest(
                place,
                name,
                argv,
                description=f"the messaging channel {channel}",
                language="python",
                scope=ProcessScope.DAEMON,
                env=env,
                # Two processes must not receive from one platform: Telegram refuses a second one.
                reload=ReloadBy.REPLACE,
            )
        )
