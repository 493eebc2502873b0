"""Looks at the daemons of a database."""

import asyncio
import os
import signal
import socket

import psycopg

from zotd.testing import warm

FAILOVER_S = 60
"""Longest wait for what takes 14 s on a machine with nothing else to do."""


def name_of(house):
    return f"{socket.gethostname()}:{house.place.home}"


def row(database, query, *values):
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(query, values).fetchone()


def number_of(database, house):
    (number,) = row(database, "SELECT number FROM daemons WHERE name = %s", name_of(house)) or (None,)
    return number


async def until(database, query, *values):
    """Wait until the query, which returns one boolean, says true."""

    def wait():
        with psycopg.connect(database, autocommit=True) as watch:
            while watch.execute(query, values).fetchone() != (True,):
                pass  # the server does not report it

    async with asyncio.timeout(FAILOVER_S):
        await asyncio.to_thread(wait)


async def output_of(house, module, *arguments):
    """What a program prints for a user of this daemon."""
    code, out, _ = await printed_by(house, module, *arguments)
    assert code == 0
    return out


async def printed_by(house, module, *arguments):
    """The exit code of a program of a user of this daemon, and what it prints."""
    program, *rest = warm.command(module, *arguments)
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(
        program, *rest, env=house.place.env, stdout=pipe, stderr=pipe, limit=2**20
    )
    out, err = await running.communicate()
    return running.returncode, out.decode(), err.decode()


async def begin_draining(client, pid=None):
    """Send SIGTERM, to the daemon in this process unless told where, and wait until it has noticed."""
    os.kill(pid or os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(60):
        while (await client.ask("daemon.status"))["state"] != "stopping":
            pass
