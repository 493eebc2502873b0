"""Imports of programs that were written before the package `zot`."""

import pytest

from zotd.embed import blocking_runtime, session_runtime


def test_former_imports_work_and_say_what_to_use_instead():
    with pytest.warns(
        DeprecationWarning, match=r"zotd\.embed\.runtime\.\w+ goes with zot 0\.3; use zot\.Agent \("
    ) as told:
        from zotd.embed.runtime import BusyError, Runtime  # noqa: PLC0415
    with pytest.warns(DeprecationWarning, match=r"zotd\.embed\.blocking\.BlockingRuntime .* run_sync and stream_sync"):
        from zotd.embed.blocking import BlockingRuntime  # noqa: PLC0415
    assert (Runtime, BusyError) == (session_runtime.Runtime, session_runtime.BusyError)
    assert BlockingRuntime is blocking_runtime.BlockingRuntime
    assert {warning.filename for warning in told} == {__file__}


def test_a_name_that_never_was_there_is_an_import_error():
    with pytest.raises(ImportError, match="Runtme"):
        from zotd.embed.runtime import Runtme  # noqa: F401, PLC0415
