"""Types of settings. Their titles complete the sentence "KEY must be ..."."""

from typing import Annotated, Literal

from msgspec import Meta

YEAR_S = 365 * 24 * 3600
"""Upper bound of durations, to catch typing errors."""

Count = Annotated[int, Meta(ge=1, title="an integer of at least 1")]
Days = Annotated[int, Meta(ge=1, le=36_500, title="an integer from 1 to 36,500")]
Levels = Annotated[int, Meta(ge=0, le=4, title="an integer from 0 to 4")]
Jobs = Annotated[int, Meta(ge=0, le=64, title="an integer from 0 to 64")]
Places = Annotated[int, Meta(ge=0, le=1000, title="an integer from 0 to 1,000")]
Tokens = Annotated[int, Meta(ge=0, title="an integer of at least 0")]
Money = Annotated[float, Meta(gt=0, title="a number greater than 0")]
Cents = Annotated[float, Meta(ge=0, title="a number of at least 0")]
Part = Annotated[float, Meta(gt=0, le=1, title="a number greater than 0 and at most 1")]
PartOrNone = Annotated[float, Meta(ge=0, le=1, title="a number from 0 to 1")]
Pause = Annotated[float, Meta(gt=0, le=YEAR_S, title="a number of seconds greater than 0, at most one year")]
Seconds = Annotated[float, Meta(ge=0, le=YEAR_S, title="a number of seconds from 0 to one year")]
Url = Annotated[
    str, Meta(pattern=r"^https?://[^/@\s]+(/\S*)?\Z", title="an http(s) URL without user name and password")
]
Postgres = Annotated[
    str,
    Meta(
        pattern=r"^postgresql://(?!\S*[?&](ssl)?password=)([^:/@?\s]*@)?[^@\s]*\Z",
        title="a postgresql:// URL without a password, which belongs into a password file",
    ),
]
DaemonUrl = Annotated[
    str, Meta(pattern=r"^wss?://[^/@?#\s]+\Z", title="a URL of a WebSocket door such as wss://host:port")
]
GitUrl = Annotated[
    str,
    Meta(
        pattern=r"^(/|file://|(ssh|https)://(?![^/\s]*:[^/\s]*@)|[A-Za-z0-9][^\s:/]*:(?!:|//))[^\s]*\Z",
        title="an absolute path, HOST:PATH, or an ssh:// or https:// URL without a password, of a git repository",
    ),
]
Contact = Annotated[str, Meta(pattern=r"^(mailto:|https://)\S+\Z", title="a mailto: or https: URL")]
Command = Annotated[tuple[str, ...], Meta(min_length=1, title="a list of strings: a program and its arguments")]
Names = Annotated[tuple[str, ...], Meta(title="a list of strings")]
Label = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f-\x9f]{0,200}\Z",
        title="a string of at most 200 characters, without control characters",
    ),
]
Labels = Annotated[
    tuple[Label, ...], Meta(title="a list of strings of at most 200 characters each, without control characters")
]
Listen = Annotated[
    str,
    Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):[0-9]{1,5}\Z", title="HOST:PORT, for example 127.0.0.1:8765"),
]
Flag = Annotated[bool, Meta(title="true or false")]
Directory = Annotated[str, Meta(pattern=r"^/", title="an absolute path")]
Nested = Literal["off", "submit"]
Level = Literal["debug", "info", "warning", "error"]
Headers = Annotated[dict[str, str], Meta(title="a table of strings: header names and values")]
Fields = Annotated[dict[str, object], Meta(title="a table")]
