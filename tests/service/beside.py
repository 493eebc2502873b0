"""A client beside the service, for journeys: python beside.py pid | knock

`pid` says which daemon answers, and waits for one that is being started. `knock` connects, asks and goes away, over and
over until its standard input ends, and says as JSON how often that went well and what went wrong.
"""

import json
import os
import select
import sys
from collections import Counter

from zotd import paths
from zotd.client.blocking import Connection, open_socket
from zotd.client.errors import ClientError, ConnectionLostError

ANSWER_S = 40.0


def pid():
    """Of the daemon that answers. Its socket is there all the time; what ends with it is asked again."""
    while True:
        try:
            with Connection(open_socket(paths.socket_path(os.environ), ANSWER_S)) as connection:
                return connection.call("daemon.status", timeout_s=ANSWER_S)["pid"]
        except ConnectionLostError:
            continue


def knock():
    """One knock at a time: what was accepted by a daemon that ends then is `lost`, and may be asked again."""
    found: Counter[str] = Counter()
    while not select.select([sys.stdin], [], [], 0)[0]:
        try:
            sock = open_socket(paths.socket_path(os.environ), ANSWER_S)
        except (ClientError, OSError) as error:
            found[f"refused: {error}"] += 1
            continue
        try:
            with Connection(sock) as connection:
                connection.call("ping", timeout_s=ANSWER_S)
                found["answered"] += 1
                if found["answered"] == 1:
                    sys.stdout.write("begun\n")
                    sys.stdout.flush()
        except ClientError as error:
            found[f"lost: {type(error).__name__}"] += 1
    return dict(found)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"pid": pid, "knock": knock}[sys.argv[1]]()))
