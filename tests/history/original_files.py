"""Session files as the original program writes them: a row of JSON on each line, keys sorted, times with nanoseconds."""

import base64
import json

STARTED = "2026-05-04T09:00:00.123456789Z"


def time(minute):
    return f"2026-05-04T09:{minute:02d}:00.987654321Z"


def line(row):
    return json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n"


def meta(**fields):
    plain = {"id": "old-1", "cwd": "/old/work", "model": "gpt-5", "provider": "openai", "started": STARTED}
    return line({"type": "meta", "meta": plain | {"version": "0.0.0"} | fields})


def message(role, *content, minute=1):
    return line({"type": "message", "message": {"role": role, "content": list(content), "time": time(minute)}})


def text(words):
    return {"text": words}


def image(data=b"\x89PNG"):
    return {"mime_type": "image/png", "data": base64.b64encode(data).decode()}


def call(key, name="bash", **arguments):
    return {"id": key, "name": name, "arguments": arguments}


def result(key, *content, is_error=False):
    return {"call_id": key, "content": list(content), "is_error": is_error}


def tokens(count, cost_usd=0.0):
    return {
        "input_tokens": count,
        "output_tokens": count,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "cost_usd": cost_usd,
    }


def usage(own, total):
    return line({"type": "usage", "usage": own, "cumulative": total})


def rename(title):
    return line({"type": "rename", "title": title})


def compaction(*messages):
    return line({"type": "compaction", "messages": list(messages)})


def said(role, *content, minute=1):
    """A message as it stands in a compaction."""
    return {"role": role, "content": list(content), "time": time(minute)}
