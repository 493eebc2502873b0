"""What `zotctl top` shows: a daemon with its sessions and extensions."""

import os
from collections.abc import Callable

from zotctl.top import render
from zotctl.top.live import View
from zotctl.top.sample import Observer, Sample
from zotd.client import place
from zotd.client.blocking import Connection


def _observe(connection: Connection) -> Callable[[], Sample]:
    return Observer(connection, is_local=not place.of(os.environ).is_remote).look


VIEW = View(_observe, render.draw, render.as_json)
