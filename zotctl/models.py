"""`zotctl models`: which models there are, what is known of one, and what works with it."""

import argparse
import os
from collections.abc import Sequence

from zotctl import link, output
from zotctl.auth import WORDS
from zotctl.commands import Subparsers
from zotd.client import place
from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError, ClientError
from zotd.client.fields import amount, child, children, number, strings, text
from zotd.client.humanize import count
from zotd.sanitize import one_line

PROBES = ("stream", "tools", "images", "reasoning", "caching")
"""What can be checked, in this order; as in `zotd.sessions.model_probes`, which clients cannot import."""

NEEDED = frozenset({"stream", "tools"})
"""Without these a model is of no use as an agent."""

PROBE_S = 70.0
"""Time limit for one probe in seconds; the daemon gives up after 60."""

MARKS = {True: "yes", False: "no", None: "unknown"}

EPILOG = """\
examples:
  zotctl models list --provider openai
  zotctl models show claude-sonnet-5-5
  zotctl models check
  zotctl models check ollama/qwen3 google/gemini-3.8-flash --only stream,tools

`check` sends a small request for each question, two of 3,000 words for `caching`; the cost is shown, and is in no sum of
`zotctl usage`. It exits with 1 unless each model streams and calls tools. Without MODEL it checks the model of new
sessions.
"""


def add(commands: Subparsers) -> None:
    """Register `models` and its actions."""
    parser = commands.add_parser("models", help="list, describe and check models", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list models: those used last, then current ones")
    listing.add_argument("--all", action="store_true", help="also list superseded models")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="show limits, prices, address and key of a model")
    show.add_argument("model", nargs="?", default="", metavar="MODEL", help="model, or PROVIDER/MODEL")
    show.set_defaults(run=_show)
    check = actions.add_parser("check", help="find out what works with a model", epilog=EPILOG)
    check.formatter_class = argparse.RawDescriptionHelpFormatter
    check.add_argument("models", nargs="*", metavar="MODEL", help="model, or PROVIDER/MODEL")
    check.add_argument(
        "--only", type=_probes, default=PROBES, metavar="WHAT,…", help=f"check only some of: {', '.join(PROBES)}"
    )
    check.set_defaults(run=_check)
    for action in (listing, show, check):
        action.add_argument("--provider", metavar="PROVIDER", help="model vendor: anthropic, openai, …")
        action.add_argument("--json", action="store_true", help="print the result as JSON")


# --- list ---------------------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = connection.call("get_models", all=True, provider=args.provider, current=not args.all)
        keyed = {text(one, "provider") for one in _vendors(connection) if _has_own_key(one)}
    models = children(found, "models")
    for one in models:
        one["ready"] = one.get("ready") is not False or text(one, "provider") in keyed
    if args.json:
        output.print_json({"v": 1, "models": models})
        return 0
    rows = [
        [
            text(one, "provider"),
            text(one, "id"),
            _tokens(one, "context_window"),
            _tokens(one, "max_output"),
            _notes(one),
        ]
        for one in models
    ]
    output.print_table(["PROVIDER", "MODEL", "CONTEXT", "OUTPUT", ""], rows)
    return 0


def _notes(one: Json) -> str:
    notes = {
        "no key": one.get("ready") is False,
        "reasons": one.get("reasoning") is True,
        "no images": one.get("images") is False,
        "no tools": one.get("tools") is False,
        "superseded": one.get("superseded") is True,
    }
    return ", ".join(note for note, applies in notes.items() if applies)


def _tokens(one: Json, field: str) -> str:
    return count(number(one, field)) if number(one, field) else ""


# --- show ---------------------------------------------------------------------------------------------------------------


def _show(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = connection.call("model.show", _query(args.model, args.provider, _vendors(connection)))
    if args.json:
        output.print_json({"v": 1, **found})
        return 0
    for name, value in _description(found):
        print(one_line(f"{name:<10} {value}"))
    return 0


def _description(found: Json) -> list[tuple[str, str]]:
    info, key = child(found, "info"), child(found, "key")
    prices = found.get("prices")
    source = text(key, "source")
    lines = [
        ("model", text(info, "id")),
        ("provider", f"{text(info, 'provider')} ({text(found, 'title')})"),
        ("dialect", text(found, "dialect")),
        ("address", text(found, "base_url")),
        ("key", _key(key, source)),
        ("context", f"{number(info, 'context_window'):,} tokens" if number(info, "context_window") else "unknown"),
        ("output", f"{number(info, 'max_output'):,} tokens at most"),
        ("prices", _prices(prices) if isinstance(prices, dict) else "unknown; budgets count budget.unknown_usd"),
        ("reasoning", MARKS[info.get("reasoning") is True]),
        ("images", MARKS[_flag(info, "images")]),
        ("tools", MARKS[_flag(info, "tools")]),
    ]
    if not found.get("known"):
        lines.append(("note", "the catalog does not know this model; describe it with [[models]] in config.toml"))
    if info.get("superseded"):
        lines.append(("note", "this vendor has a successor of it"))
    if missing := text(found, "missing"):
        lines.append(("missing", missing))
    return lines


def _key(key: Json, source: str) -> str:
    variables = strings(key, "variables")
    if text(key, "own_login"):
        return f"your login of {text(key, 'own_login')}"
    if not variables and not strings(key, "methods"):
        return "not needed"
    if not source:
        return f"none; {f'set {variables[0]}, or ' if variables else ''}run: zotctl login {text(key, 'provider')}"
    return f"from {WORDS.get(source, source)}"


def _prices(prices: Json) -> str:
    kinds = ("input", "output", "cache_read", "cache_write")
    return ", ".join(f"{kind.replace('_', ' ')} {amount(prices, kind):g}" for kind in kinds) + " USD per million tokens"


def _flag(info: Json, field: str) -> bool | None:
    value = info.get(field)
    return value if isinstance(value, bool) else None


# --- check --------------------------------------------------------------------------------------------------------------


def _check(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        vendors = _vendors(connection)
        results = [
            _checked(connection, _query(model, args.provider, vendors), args.only, quiet=args.json)
            for model in args.models or [""]
        ]
    if args.json:
        output.print_json({"v": 1, "models": results})
    else:
        cost = sum(amount(child(probe, "tokens"), "cost_usd") for one in results for probe in children(one, "probes"))
        print(f"cost: {cost:.4f} USD, as far as prices are known")
    return 0 if all(one["ok"] for one in results) else 1


def _checked(connection: Connection, query: Json, probes: Sequence[str], *, quiet: bool) -> Json:
    """Carry out the probes of one model, and print each result at once unless `quiet`."""
    info = child(connection.call("model.show", query), "info")
    name = f"{text(info, 'provider')}/{text(info, 'id')}"
    query = {**query, "provider": text(info, "provider"), "model": text(info, "id")}
    if not quiet:
        print(one_line(name), flush=True)
    found: list[Json] = []
    for probe in probes:
        with output.progress(f"checking {probe}"):
            result = _probed(connection, query, probe)
        found.append(result)
        if not quiet:
            _print(result)
        if probe == "stream" and text(result, "outcome") == "no":
            break  # whatever keeps it from answering keeps it from everything else
    ok = all(text(one, "outcome") in {"yes", "unclear"} for one in found if text(one, "probe") in NEEDED)
    return {"provider": text(info, "provider"), "model": text(info, "id"), "ok": ok, "probes": found}


def _probed(connection: Connection, query: Json, probe: str) -> Json:
    try:
        return connection.call("model.check", {**query, "probe": probe}, timeout_s=PROBE_S)
    except CallError as error:
        if error.code != "blocked":  # no key, or no budget left: a verdict like any other
            raise
        return {"probe": probe, "outcome": "no", "sentence": error.sentence, "took_s": 0.0, "tokens": {}}


def _print(result: Json) -> None:
    words = f"  {text(result, 'probe'):<10} {text(result, 'outcome'):<8} {text(result, 'sentence')}"
    took_s = amount(result, "took_s")
    print(one_line(words + (f" ({took_s:.1f} s)" if took_s else "")), flush=True)


def _probes(word: str) -> tuple[str, ...]:
    wanted = [part.strip() for part in word.split(",")]
    if unknown := [part for part in wanted if part not in PROBES]:
        raise argparse.ArgumentTypeError(f'"{unknown[0]}" cannot be checked; choose from {", ".join(PROBES)}')
    return tuple(probe for probe in PROBES if probe in wanted)


# --- vendors ------------------------------------------------------------------------------------------------------------


def _vendors(connection: Connection) -> list[Json]:
    return children(connection.call("auth.list"), "providers")


def _has_own_key(vendor: Json) -> bool:
    return any(os.environ.get(name) for name in strings(vendor, "variables"))


def _query(model: str, provider: str | None, vendors: Sequence[Json]) -> Json:
    """Return the fields that name a model: `PROVIDER/MODEL`, or a model that may contain slashes itself."""
    names = {text(one, "provider") for one in vendors}
    before, slash, behind = model.partition("/")
    if provider is None and slash and before in names:
        provider, model = before, behind
    if provider is not None and provider not in names:
        raise ClientError(f'unknown provider "{provider}"; known providers: {", ".join(sorted(names))}')
    return {"provider": provider, "model": model, "env": _variables(vendors)}


def _variables(vendors: Sequence[Json]) -> dict[str, str] | None:
    """Return the variables that vendors use, as `zot` would pass them on; nothing leaves this machine."""
    if place.of(os.environ).is_remote:
        return None
    wanted = {name for one in vendors for name in (*strings(one, "variables"), *strings(one, "settings"))}
    return {name: os.environ[name] for name in sorted(wanted) if os.environ.get(name)}
