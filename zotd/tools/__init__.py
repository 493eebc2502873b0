"""The built-in tools, one module each, and the list `TOOLS`."""

from zotd.core.ports import Tool
from zotd.tools import bash, edit, fetch, glob, grep, jobs, plan, read, skill, task, wake_later, web_search, write

TOOLS: tuple[Tool, ...] = (
    bash.TOOL,
    edit.TOOL,
    fetch.TOOL,
    glob.TOOL,
    grep.TOOL,
    jobs.OUTPUT,
    jobs.STOP,
    jobs.WAIT,
    plan.TOOL,
    read.TOOL,
    skill.TOOL,
    task.TOOL,
    wake_later.TOOL,
    web_search.TOOL,
    write.TOOL,
)
"""Sorted by name, the order in which models see them. Changing the order would invalidate providers' prompt caches."""
