"""The hosts that ordinary work needs: registries of packages, and what their programs fetch from.

These are public services. Each of them can carry data out of a jail, to an account that may publish a package or push a
branch there.
"""

DEFAULT_HOSTS: tuple[str, ...] = (
    # Python
    "pypi.org",
    "files.pythonhosted.org",
    "conda.anaconda.org",
    "repo.anaconda.com",
    # JavaScript
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "repo.yarnpkg.com",
    "nodejs.org",
    "jsr.io",
    "npm.jsr.io",
    # Rust
    "crates.io",
    "index.crates.io",
    "static.crates.io",
    "static.rust-lang.org",
    # Go
    "go.dev",
    "proxy.golang.org",
    "sum.golang.org",
    # Java, .NET, Ruby, PHP, Elixir
    "repo.maven.apache.org",
    "repo1.maven.org",
    "plugins.gradle.org",
    "services.gradle.org",
    "api.nuget.org",
    "rubygems.org",
    "index.rubygems.org",
    "repo.packagist.org",
    "hex.pm",
    "repo.hex.pm",
    # Repositories
    "github.com",
    "api.github.com",
    "codeload.github.com",
    "raw.githubusercontent.com",
    "objects.githubusercontent.com",
    "release-assets.githubusercontent.com",
    "gitlab.com",
    "codeberg.org",
    # Systems
    "deb.debian.org",
    "security.debian.org",
    "archive.ubuntu.com",
    "security.ubuntu.com",
    "ports.ubuntu.com",
    "dl-cdn.alpinelinux.org",
)
"""Rules of `zotd.proxy.rules.parse_rule`."""
