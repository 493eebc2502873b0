"""The bare repository that the daemons of a database share: where copies of sessions' files are pushed and fetched.

A push names the copy that it replaces. So a daemon that has lost a session replaces nothing that its successor has pushed.
"""

import os
from collections.abc import Mapping

from zotd.checkpoints.errors import AbandonedError, CheckpointError
from zotd.checkpoints.shadow import ShadowRepository

FILES = "refs/zot/files"
HISTORY = "refs/zot/history"

FETCHED = "refs/zot/fetched"
"""Where a shadow repository has the copies that it has fetched, by session: they are not pruned while they are used."""

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 -o ServerAliveCountMax=3"
"""Asks for no password, and gives a host up that does not answer."""

NO_LOGIN = "terminal prompts disabled"
"""What git says if it would have to ask for a user or a password."""

PASSED = ("HOME", "SSH_AUTH_SOCK", "XDG_CONFIG_HOME")
"""Variables of the user that git needs to reach a host. Not PATH: a relative directory in it would be of the workspace."""


class LostCopyError(CheckpointError):
    """Another daemon has pushed files of the session since."""


class SharedRepository:
    """Used for one operation."""

    def __init__(self, url: str, repository: ShadowRepository, env: Mapping[str, str]) -> None:
        """`repository`: the shadow repository that copies come from and go to. `env`: of the user, for ssh and logins."""
        self.url = url
        self._repository = repository
        home = env.get("HOME", "")
        self._variables = {
            **{name: env[name] for name in PASSED if name in env},
            "GIT_CONFIG_GLOBAL": os.path.join(home, ".gitconfig") if home else os.devnull,
            "GIT_ALLOW_PROTOCOL": "file:ssh:https",
            "GIT_SSH_COMMAND": SSH,
            "GIT_ASKPASS": "",  # nor by a window, also if the user's configuration names a program for that
            "GCM_INTERACTIVE": "never",
        }

    def newest(self, session: str) -> str:
        """Return the commit of the copy that it has of a session; empty if there is none."""
        return self._named(f"{FILES}/{session}").get(f"{FILES}/{session}", "")

    def fetch(self, session: str) -> None:
        """Fetch the copy of a session, which is there."""
        self._fetch(f"+{FILES}/{session}:{FETCHED}/{session}")

    def fetch_history(self, session: str, known: str, variables: Mapping[str, str]) -> str:
        """Fetch the commits of the user's repository, and return the newest one; empty: there are none.

        `known`: one that is there already, with those before it; empty: none. `variables` say where the objects go.
        """
        commit = self._named(f"{HISTORY}/{session}").get(f"{HISTORY}/{session}", "")
        if commit and commit != known:
            tips = [f"--negotiation-tip={known}"] if known else []
            self._fetch(*tips, f"{HISTORY}/{session}", variables=variables)
        return commit

    def push(self, session: str, commit: str, expected: str, *, head: str = "", objects: str = "") -> str:
        """Push a copy in the place of the one that is expected there; empty: of none.

        `head`: a commit of the user's repository that goes with it, with those before it; its objects are in the directory
        `objects`. Returns why that was not possible; empty: it was.

        Raises:
            LostCopyError: there is another one.
            CheckpointError: it could not be pushed, or that is not known.
        """
        reference = f"{FILES}/{session}"
        lease = f"--force-with-lease={reference}:{expected}"
        both = [f"{commit}:{reference}", f"+{head}:{HISTORY}/{session}"] if head else []
        problem = ""
        if both:
            try:
                self._push("--atomic", lease, *both, objects=objects)
            except AbandonedError:
                raise
            except CheckpointError as error:
                problem = str(error)
            else:
                return ""
        try:
            self._push(lease, f"{commit}:{reference}")  # the files matter more
        except AbandonedError:
            raise
        except CheckpointError as error:
            found = self._found_after(error, session)
            if found not in {commit, expected}:
                raise LostCopyError("another daemon has stored files of the session since") from error
            if found != commit:  # else only the answer was lost
                raise
        return problem

    def remove(self, session: str) -> None:
        """Remove what there is of a session."""
        if names := list(self._named(f"{FILES}/{session}", f"{HISTORY}/{session}")):
            self._push(*[f":{name}" for name in names])

    def _found_after(self, error: CheckpointError, session: str) -> str:
        """Return the copy that is there after a push has failed; raises the error of the push if that cannot be found out."""
        try:
            return self.newest(session)
        except AbandonedError:
            raise
        except CheckpointError:
            raise error from None  # it is the cause: a helper of git forgets a wrong password, and then there is none

    def _named(self, *references: str) -> Mapping[str, str]:
        """Return the commits of these references, without those that are not there."""
        printed = self._run("ls-remote", "--quiet", self.url, *references).decode()
        lines = [line.split("\t") for line in printed.splitlines()]
        return {name: commit for commit, name in lines if name in references}

    def _fetch(self, *what: str, variables: Mapping[str, str] | None = None) -> None:
        options = [one for one in what if one.startswith("--")]
        names = [one for one in what if not one.startswith("--")]
        self._run(
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", *options, self.url, *names),
            variables=variables,
        )

    def _push(self, *what: str, objects: str = "") -> None:
        options = [one for one in what if one.startswith("--")]
        names = [one for one in what if not one.startswith("--")]
        variables = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": objects} if objects else {}
        self._run("push", "--quiet", "--no-verify", *options, self.url, *names, variables=variables)

    def _run(self, *args: str, variables: Mapping[str, str] | None = None) -> bytes:
        try:
            return self._repository.run(*args, variables={**self._variables, **(variables or {})})
        except CheckpointError as error:
            if NO_LOGIN not in str(error):
                raise
            raise CheckpointError(
                f"{self.url} wants a login, and no credential helper of git has one; see `git help credentials`"
            ) from error
