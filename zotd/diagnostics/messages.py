"""What is said between a language server and its client, as far as errors in files need it.

Source: Language Server Protocol 3.17. Fields that are not used are left out.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Literal

from zotd.wire.base import Frozen


class LspMessage(Frozen, frozen=True, rename="camel"):
    """The base of all parameters and results; names of fields are in camel case on the wire."""


class LspErrorCode(IntEnum):
    """Error codes of the protocol that mean: ask again."""

    CONTENT_MODIFIED = -32801
    SERVER_CANCELLED = -32802


ERROR = 1
"""Severity of an error; warnings have a higher number."""


class WatchedChange(IntEnum):
    """What has become of a file on the disk."""

    CREATED = 1
    CHANGED = 2
    DELETED = 3


# --- the beginning ------------------------------------------------------------------------------------------------


class WorkspaceFolder(LspMessage, frozen=True):
    """The root, as a server gets it."""

    uri: str
    name: str


class InitializeParams(LspMessage, frozen=True, omit_defaults=False):
    """What a server gets first."""

    process_id: int | None
    root_path: str
    root_uri: str
    workspace_folders: Sequence[WorkspaceFolder]
    capabilities: Mapping[str, object]
    initialization_options: Mapping[str, object]


CAPABILITIES: Mapping[str, object] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
    },
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {},
        # Only with this do servers leave the watching to us, instead of missing what commands change.
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "diagnostics": {"refreshSupport": True},
    },
    "window": {"workDoneProgress": False},
}


class ServerCapabilities(LspMessage, frozen=True):
    """What a server can do."""

    text_document_sync: object = None
    diagnostic_provider: object = None


class InitializeResult(LspMessage, frozen=True):
    """The answer to `InitializeParams`."""

    capabilities: ServerCapabilities = ServerCapabilities()


class NoParams(LspMessage, frozen=True):
    """Parameters of methods that have none."""


# --- files --------------------------------------------------------------------------------------------------------


class DocumentItem(LspMessage, frozen=True):
    """A file as it is opened."""

    uri: str
    language_id: str
    version: int
    text: str


class DocumentName(LspMessage, frozen=True):
    """A file."""

    uri: str


class VersionedDocument(LspMessage, frozen=True):
    """A file in one version."""

    uri: str
    version: int


class WholeText(LspMessage, frozen=True):
    """A change that replaces the whole text; every server accepts it."""

    text: str


class DidOpen(LspMessage, frozen=True):
    """A file is open: its text counts in place of the one on the disk."""

    text_document: DocumentItem


class DidChange(LspMessage, frozen=True):
    """An open file has another text."""

    text_document: VersionedDocument
    content_changes: Sequence[WholeText]


class OfDocument(LspMessage, frozen=True):
    """Something about a file: it was closed or saved, or its errors are asked for."""

    text_document: DocumentName


class FileEvent(LspMessage, frozen=True):
    """A file has changed on the disk."""

    uri: str
    type: int


class WatchedFilesChanged(LspMessage, frozen=True):
    """Files have changed on the disk."""

    changes: Sequence[FileEvent]


class ConfigurationChanged(LspMessage, frozen=True):
    """A server shall ask for its configuration again."""

    settings: Mapping[str, object]


# --- errors -------------------------------------------------------------------------------------------------------


class Position(LspMessage, frozen=True):
    """A place in a text, counted from 0."""

    line: int
    character: int


class TextRange(LspMessage, frozen=True):
    """A part of a text."""

    start: Position


class MarkedUpText(LspMessage, frozen=True):
    """A message with markup."""

    value: str


class Diagnostic(LspMessage, frozen=True):
    """Something that a server has found in a file."""

    range: TextRange
    message: str | MarkedUpText
    severity: int | None = None
    """None: the client decides; it counts as an error."""
    code: int | str | None = None
    source: str | None = None


class PublishDiagnostics(LspMessage, frozen=True):
    """What a server tells of a file by itself; replaces what it has told before."""

    uri: str
    diagnostics: Sequence[Diagnostic]
    version: int | None = None


class DiagnosticReport(LspMessage, frozen=True):
    """What a server answers about a file."""

    kind: Literal["full", "unchanged"] = "full"
    items: Sequence[Diagnostic] = ()


# --- requests of servers ------------------------------------------------------------------------------------------


class ConfigurationItem(LspMessage, frozen=True):
    """A section that a server asks for."""

    section: str = ""


class ConfigurationParams(LspMessage, frozen=True):
    """The sections that a server asks for."""

    items: Sequence[ConfigurationItem] = ()


class CapabilityRegistration(LspMessage, frozen=True):
    """Something that a server can do, as it says after its start."""

    method: str = ""
    register_options: object = None


class CapabilityRegistrations(LspMessage, frozen=True):
    """Several of them."""

    registrations: Sequence[CapabilityRegistration] = ()
