"""Watches the files of extensions: code of a workspace that has to be asked about, modules that come, saved programs."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path

from zotd.contributions import discovery
from zotd.contributions.discovery import ExtensionSources
from zotd.contributions.scope import ExtensionScope
from zotd.exthost import saved
from zotd.exthost.arrivals import Arrivals
from zotd.exthost.changes import Changes
from zotd.exthost.manifest import Manifest


class ExtensionWatches:
    """The watches of all hosts of this process. Belongs to one event loop."""

    def __init__(self, places: ExtensionSources, spawn: Callable[[str, Coroutine[object, object, None]], None]) -> None:
        """`spawn` starts a named task for each change."""
        self._places = places
        self._spawn = spawn
        self._arrivals = Arrivals(spawn)
        self._changes = Changes(spawn)
        self._ends: dict[ExtensionScope, list[Callable[[], None]]] = {}

    async def follow_workspace(self, layer: ExtensionScope) -> bool:
        """Watch the code of a workspace, and what the user saves; return whether each change of the code is reported."""

        def stirred() -> None:
            self._spawn(f"modules of {layer.cwd}", layer.catch_up(_runs_modules))

        cwd = Path(layer.cwd)
        await self.follow_saved(layer, self._places.home)
        self._ends[layer] += [partial(self._arrivals.forget, stirred), partial(self._changes.forget, layer.cwd)]
        await self._arrivals.watch(discovery.tool_directories(self._places, cwd), stirred)
        return await self._changes.watch(layer.cwd, partial(discovery.watched, self._places, cwd), layer.recheck)

    async def follow_saved(self, layer: ExtensionScope, home: Path | None, explicit: Sequence[Path] = ()) -> None:
        """Reload extensions of `$ZOT_HOME` or of `zot -e` when their author saves them; see `exthost.saved`."""
        key = f"saved for {id(layer)}"
        ends = self._ends[layer] = [partial(self._changes.forget, key)]
        await self._changes.watch(key, partial(saved.watched, home, explicit), partial(layer.catch_up, _is_followed))
        if self._ends.get(layer) is not ends:  # it has ended meanwhile
            self._changes.forget(key)

    async def follow_channels(self, layer: ExtensionScope) -> None:
        """Watch for the files of channels."""
        home = self._places.home
        places = {home: {"extensions"}, home / "extensions": {"channels"}, home / "extensions" / "channels": None}
        await self._changes.watch("channels", lambda: places, layer.look_again)

    def forget(self, layer: ExtensionScope) -> None:
        """End the watches of a host; harmless if there are none."""
        for end in self._ends.pop(layer, ()):
            end()

    def close(self) -> None:
        """End all watches."""
        self._arrivals.close()
        self._changes.close()


def _runs_modules(manifest: Manifest) -> bool:
    return manifest.restarts_when_stuck


def _is_followed(manifest: Manifest) -> bool:
    return bool(manifest.saved)
