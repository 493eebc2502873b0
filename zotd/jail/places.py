"""The places of a user that a jail treats in a special way: caches that it leaves writable, and secrets that it hides.

A place is a path that begins with a variable. `located` fills it in from the environment, or with the default that the
program which owns the place uses.
"""

import os
import re
from collections.abc import Iterator, Mapping

_DEFAULTS: Mapping[str, str] = {
    "XDG_CACHE_HOME": "$HOME/.cache",
    "XDG_CONFIG_HOME": "$HOME/.config",
    "XDG_DATA_HOME": "$HOME/.local/share",
    "XDG_RUNTIME_DIR": "/run/user/$UID",
    "CARGO_HOME": "$HOME/.cargo",
    "GNUPGHOME": "$HOME/.gnupg",
    "GOPATH": "$HOME/go",
    "GOMODCACHE": "$GOPATH/pkg/mod",
    "GOCACHE": "$XDG_CACHE_HOME/go-build",
    "PIP_CACHE_DIR": "$XDG_CACHE_HOME/pip",
    "UV_CACHE_DIR": "$XDG_CACHE_HOME/uv",
    "TMUX_TMPDIR": "/tmp",  # noqa: S108  (what tmux uses)
    "npm_config_cache": "$HOME/.npm",
}
"""What a variable stands for when it is unset."""

CACHES: tuple[str, ...] = (
    "$XDG_CACHE_HOME",
    "$HOME/Library/Caches",
    "$PIP_CACHE_DIR",
    "$UV_CACHE_DIR",
    "$npm_config_cache",
    "$HOME/.yarn/berry/cache",
    "$XDG_DATA_HOME/pnpm/store",
    "$HOME/.bun/install/cache",
    "$CARGO_HOME/registry",
    "$CARGO_HOME/git",
    "$CARGO_HOME/.package-cache",
    "$CARGO_HOME/.package-cache-mutate",
    "$CARGO_HOME/.global-cache",
    "$GOMODCACHE",
    "$GOCACHE",
    "$HOME/.gradle/caches",
    "$HOME/.m2/repository",
    "$HOME/.nuget/packages",
    "$HOME/.ccache",
)
"""Directories and files whose content is fetched or built again when it is missing."""

CACHE_PROGRAMS: Mapping[str, str] = {
    "$XDG_CACHE_HOME": "",
    "$UV_CACHE_DIR": "uv",
    "$npm_config_cache": "npm",
    "$HOME/.yarn/berry/cache": "yarn",
    "$XDG_DATA_HOME/pnpm/store": "pnpm",
    "$HOME/.bun/install/cache": "bun",
    "$CARGO_HOME/registry": "cargo",
    "$CARGO_HOME/git": "cargo",
    "$CARGO_HOME/.package-cache": "cargo",
    "$CARGO_HOME/.package-cache-mutate": "cargo",
    "$GOMODCACHE": "go",
    "$GOCACHE": "go",
    "$HOME/.m2/repository": "mvn",
    "$HOME/.nuget/packages": "dotnet",
    "$HOME/.ccache": "ccache",
}
"""Caches that are made if they are missing and this program is installed; empty: always."""

CACHE_FILES = frozenset({"$CARGO_HOME/.package-cache", "$CARGO_HOME/.package-cache-mutate"})
"""Those that are files."""

SECRETS: tuple[str, ...] = (
    # Keys and passwords
    "$HOME/.ssh",
    "$HOME/.gnupg",
    "$GNUPGHOME",
    "$HOME/.password-store",
    "$HOME/.netrc",
    "$HOME/.authinfo",
    "$HOME/.authinfo.gpg",
    "$HOME/.pgpass",
    "$HOME/.my.cnf",
    "$HOME/.git-credentials",
    "$XDG_CONFIG_HOME/git/credentials",
    "$XDG_CONFIG_HOME/op",
    "$HOME/.vault-token",
    # Keyrings
    "$XDG_DATA_HOME/keyrings",
    "$XDG_DATA_HOME/kwalletd",
    "$HOME/.kde/share/apps/kwallet",
    "$HOME/Library/Keychains",
    # Clouds and registries
    "$HOME/.aws",
    "$HOME/.azure",
    "$HOME/.kube",
    "$HOME/.oci",
    "$HOME/.fly",
    "$HOME/.boto",
    "$HOME/.s3cfg",
    "$HOME/.docker/config.json",
    "$HOME/.pypirc",
    "$HOME/.terraform.d/credentials.tfrc.json",
    "$HOME/.gem/credentials",
    "$CARGO_HOME/credentials",
    "$CARGO_HOME/credentials.toml",
    "$XDG_CONFIG_HOME/gcloud",
    "$XDG_CONFIG_HOME/doctl",
    "$XDG_CONFIG_HOME/hcloud",
    "$XDG_CONFIG_HOME/rclone",
    "$XDG_CONFIG_HOME/containers/auth.json",
    "$XDG_CONFIG_HOME/gh",
    "$XDG_CONFIG_HOME/glab-cli",
    # Other agents
    "$HOME/.claude/.credentials.json",
    "$HOME/.codex/auth.json",
    "$HOME/.gemini/oauth_creds.json",
    "$XDG_CONFIG_HOME/github-copilot",
    # Browsers and mail
    "$HOME/.mozilla",
    "$HOME/.thunderbird",
    "$HOME/.var/app",
    "$HOME/snap/firefox",
    "$HOME/snap/chromium",
    "$XDG_CONFIG_HOME/BraveSoftware",
    "$XDG_CONFIG_HOME/chromium",
    "$XDG_CONFIG_HOME/google-chrome",
    "$XDG_CONFIG_HOME/microsoft-edge",
    "$XDG_CONFIG_HOME/opera",
    "$XDG_CONFIG_HOME/vivaldi",
    "$HOME/Library/Cookies",
    "$HOME/Library/Mail",
    "$HOME/Library/Messages",
    "$HOME/Library/Safari",
    "$HOME/Library/Application Support/BraveSoftware",
    "$HOME/Library/Application Support/Firefox",
    "$HOME/Library/Application Support/Google/Chrome",
    "$HOME/Library/Application Support/Microsoft Edge",
)
"""Files and directories with secrets of a user; `.npmrc` is not one, because npm needs it to install anything."""

SOCKETS: tuple[str, ...] = (
    "$XDG_RUNTIME_DIR",
    "$TMUX_TMPDIR/tmux-$UID",
    "/tmp/.X11-unix",  # noqa: S108  (where X servers listen)
    "/tmp/.ICE-unix",  # noqa: S108
    "/run",
    "/var/run",
)
"""Directories in which programs listen that would do for a command what its jail refuses. `/run` has Docker's,
D-Bus' and systemd's."""

PROGRAMS_IN_RUN: tuple[str, ...] = ("/run/current-system", "/run/booted-system", "/run/opengl-driver")
"""Where NixOS has its programs."""

RESOLVER: tuple[str, ...] = ("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/nscd")
"""Directories in `/run` that name resolution needs."""

_VARIABLE = re.compile(r"\$(\w+)")


def located(places: tuple[str, ...], env: Mapping[str, str], home: str) -> Iterator[str]:
    """Yield the absolute path of each place, in order, whether or not it exists.

    Args:
        places: from a table of this module.
        env: the user's environment; a relative value counts as unset.
        home: the user's home directory, for `$HOME`.
    """

    def value(name: str) -> str:
        if name == "UID":
            return str(os.getuid())
        if name == "HOME":
            return home
        given = env.get(name, "")
        return given if os.path.isabs(given) else _VARIABLE.sub(lambda found: value(found[1]), _DEFAULTS[name])

    for place in places:
        yield os.path.normpath(_VARIABLE.sub(lambda found: value(found[1]), place))
