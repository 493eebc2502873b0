"""A pytest plugin: failures are named when they happen, and are reported whatever their text is.

A whole run takes most of an hour, and the end of its output is often all that is left of it.
"""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:  # a worker of pytest-xdist has none
        config.pluginmanager.register(FailureNames(reporter))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable():
    """Escape what is not text, such as a file name that is not UTF-8.

    pytest-xdist cannot send it to the main process, and ends the whole run with an internal error instead of reporting a failure.
    """
    return _escaped((yield))


def _escaped(value):
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_escaped, value))
    return value


class FailureNames:
    """Prints the name of each failed test on a line of its own, and the first internal error again as the last thing.

    Errors of pytest-xdist about the worker that is missing follow the first one, and bury it.
    """

    def __init__(self, reporter):
        self._reporter = reporter
        self._internal_error = ""

    def pytest_runtest_logreport(self, report):
        if report.failed:
            phase = "" if report.when == "call" else f" ({report.when})"
            self._reporter.ensure_newline()
            self._reporter.write_line(f"FAILED {report.nodeid}{phase}")

    def pytest_internalerror(self, excrepr):
        self._internal_error = self._internal_error or str(excrepr)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self):
        if self._internal_error:
            self._reporter.write_line(f"\nfirst internal error:\n{self._internal_error}")
