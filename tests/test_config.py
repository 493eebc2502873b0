"""`config.toml`, the environment and flags."""

import re

import msgspec
import pytest

from zotd import config
from zotd.config import Config, ConfigError, ModelEntry, ModelPrices, RuleEntry, SettingSource, load


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config.toml"


def test_without_a_file_everything_is_as_declared(path):
    loaded = load(path, {})
    assert loaded.config == Config()
    assert set(loaded.sources.values()) == {SettingSource.DEFAULT}
    assert loaded.warnings == []


def test_a_flag_beats_the_environment_and_that_the_file_and_that_the_default(path):
    path.write_text('model = "file"\nmax_steps = 1\nreasoning = "low"\n')
    loaded = load(path, {"ZOT_MODEL": "environment", "ZOT_MAX_STEPS": "2"}, {"model": "flag", "max_steps": None})

    assert (loaded.config.model, loaded.sources["model"]) == ("flag", SettingSource.FLAG)
    assert (loaded.config.max_steps, loaded.sources["max_steps"]) == (2, SettingSource.ENVIRONMENT)
    assert (loaded.config.reasoning, loaded.sources["reasoning"]) == ("low", SettingSource.FILE)
    assert (loaded.config.provider, loaded.sources["provider"]) == (None, SettingSource.DEFAULT)
    assert loaded.values["model"] == "flag"


def test_tables_hold_limits_and_providers(path):
    path.write_text('[limits]\nidle_exit_s = 5\n[providers.ollama]\nbase_url = "http://box:11434/v1"\n')
    loaded = load(path, {"ZOT_LIMITS_SESSION_UNLOAD_S": "0.5"})

    assert (loaded.config.limits.idle_exit_s, loaded.config.limits.session_unload_s) == (5.0, 0.5)
    assert loaded.config.providers["ollama"].base_url == "http://box:11434/v1"
    assert loaded.sources["providers.ollama.base_url"] == SettingSource.FILE


def test_a_command_is_a_list_in_the_file_and_words_in_the_environment(path):
    path.write_text('api_key_command = ["pass", "show", "llm/{provider}"]')
    assert load(path, {}).config.api_key_command == ("pass", "show", "llm/{provider}")
    environment = {"ZOT_API_KEY_COMMAND": "security 'my {provider} key'"}
    assert load(path, environment).config.api_key_command == ("security", "my {provider} key")


def test_an_empty_variable_counts_as_unset_and_others_are_not_looked_at(path):
    loaded = load(path, {"ZOT_MODEL": "", "ZOT_HOME": "/x", "ZOT_EXTENSION_TOKEN": "x", "MODEL": "x"})
    assert (loaded.config, loaded.warnings) == (Config(), [])


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ('modle = "x"', "unknown setting modle is ignored; did you mean model?"),
        ("[limits]\nidle_exit = 5", "unknown setting limits.idle_exit is ignored; did you mean limits.idle_exit_s?"),
        (
            '[providers.x]\nbaseurl = ""',
            "unknown setting providers.x.baseurl is ignored; did you mean providers.<name>",
        ),
        ("[zebra]\na = 1\nb = 2", "unknown setting zebra is ignored"),
    ],
)
def test_an_unknown_key_is_a_warning_that_names_the_nearest(path, text, warning):
    path.write_text(text)
    loaded = load(path, {})
    assert len(loaded.warnings) == 1
    assert loaded.warnings[0].startswith(f"{path}: {warning}")
    assert loaded.config.model is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("max_steps = 0", "max_steps must be an integer of at least 1"),
        ('max_steps = "many"', "max_steps must be an integer of at least 1"),
        ("compact_at = 1.5", "compact_at must be a number greater than 0 and at most 1"),
        ("compact_at = nan", "compact_at must be a number greater than 0 and at most 1"),
        ("compact_early_at = -0.1", "compact_early_at must be a number from 0 to 1"),
        ("limits.idle_exit_s = inf", "limits.idle_exit_s must be a number of seconds from 0 to one year"),
        ("model = true", "model must be a string"),
        ("model = {}", "model must be a string"),
        ('log_level = "loud"', 'log_level must be "debug", "info", "warning" or "error"'),
        ("api_key_command = []", "api_key_command must be a list of strings: a program and its arguments"),
        (
            'api_key_command = "pass {provider}"',
            "api_key_command must be a list of strings: a program and its arguments",
        ),
        ("limits = 5", "limits must be a table: [limits]"),
        ("providers.x = 5", "providers.x must be a table: [providers.x]"),
        (
            'providers.x.base_url = "ftp://x"',
            "providers.x.base_url must be an http(s) URL without user name and password",
        ),
        ('providers.x.base_url = "https://me:pw@x/"', "providers.x.base_url must be an http(s) URL without user name"),
        ('providers.x.base_url = "https://x/\\n"', "providers.x.base_url must be an http(s) URL"),
        (
            'fleet.workspaces = "https://me:pw@x/y.git"',
            "fleet.workspaces must be an absolute path, HOST:PATH, or an ssh://",
        ),
        ('fleet.workspaces = "ssh://me:pw@x/y.git"', "fleet.workspaces must be an absolute path"),
        ('fleet.place = "x\\u0000y"', "fleet.place must be a string of at most 200 characters, without control"),
        ('fleet.place = "x\\n"', "fleet.place must be a string of at most 200 characters"),
        (f'fleet.place = "{201 * "x"}"', "fleet.place must be a string of at most 200 characters"),
        (
            'fleet.labels = ["gpu", "x\\u0000y"]',
            "fleet.labels must be a list of strings of at most 200 characters each, without control characters",
        ),
        (f'fleet.labels = ["{201 * "x"}"]', "fleet.labels must be a list of strings of at most 200 characters each"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_file_key_and_expected_value(path, text, sentence):
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert str(caught.value).startswith(f"{path}: {sentence}")
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("/srv/x.git", "box:x.git", "me@box:x", "ssh://me@box:22/x", "ssh://me@[::1]:22/x"),
        *("https://me@x/y:z@1.git", "https://x:8443/y.git", "file:///x"),
    ],
)
def test_an_address_of_a_repository_may_have_a_user(path, url):
    path.write_text(f'fleet.workspaces = "{url}"')
    assert load(path, {}).config.fleet.workspaces == url


def test_labels_are_words_of_a_variable_or_texts_of_the_file(path):
    path.write_text('fleet = {place = "große Kiste", labels = ["gpu", "repo zot"]}')
    fleet = load(path, {}).config.fleet
    assert (fleet.place, fleet.labels) == ("große Kiste", ("gpu", "repo zot"))
    assert load(path, {"ZOT_FLEET_LABELS": "gpu 'repo zot'"}).config.fleet == fleet


@pytest.mark.parametrize(
    ("variable", "text"),
    [("ZOT_MAX_STEPS", "x"), ("ZOT_COMPACT_AT", "2"), ("ZOT_API_KEY_COMMAND", "'open"), ("ZOT_LOG_LEVEL", "INFO")],
)
def test_a_wrong_variable_is_named(path, variable, text):
    with pytest.raises(ConfigError, match=f"^{variable} must be "):
        load(path, {variable: text})


def test_a_wrong_flag_is_named(path):
    with pytest.raises(ConfigError, match="the flag for max_steps must be an integer"):
        load(path, {}, {"max_steps": 0})


@pytest.mark.parametrize(
    "text",
    [
        'api_key = "VALUE"',
        '[providers.openai]\napi_key = "VALUE"',
        '[anthropic]\nAPIKEY = "VALUE"',
        'x_token = "VALUE"',
    ],
)
def test_a_secret_is_refused_with_the_way_out_and_not_repeated(path, text):
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"auth\.json") as caught:
        load(path, {})
    assert "VALUE" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ('listen = "0.0.0.0:8765"', "TLS is required, because other machines can reach 0.0.0.0:8765"),
        ('listen = "[2001:db8::1]:1"', "TLS is required"),
        ('listen = "127.0.0.1:1"\ntls_cert = "/c"', "tls_cert and tls_key must be set together"),
    ],
)
def test_a_door_that_would_not_be_safe_is_refused_before_a_daemon_is_started(path, settings, reason):
    path.write_text(f"[websocket]\n{settings}")
    with pytest.raises(ConfigError, match=reason):
        load(path, {})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://zot:VALUE@db/zot",
        "postgresql://zot@db/zot?password=VALUE",
        "postgresql:///zot?host=/run&sslpassword=VALUE",
        "host=db password=VALUE",
        "mysql://db/zot",
    ],
)
def test_an_address_of_a_database_with_a_password_is_refused_and_not_repeated(path, url):
    path.write_text(f'[journal]\nurl = "{url}"')
    with pytest.raises(ConfigError, match=r"journal\.url must be a postgresql:// URL without a password") as caught:
        load(path, {})
    assert "VALUE" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://zot@db.example.net:5433/zot?sslmode=verify-full", "postgresql:///?service=zot"]
)
def test_an_address_of_a_database_is_as_libpq_has_it(path, url):
    path.write_text(f'[journal]\nurl = "{url}"')
    assert load(path, {}).config.journal.url == url


@pytest.mark.parametrize("listen", ["127.0.0.1:1", "127.1.2.3:1", "[::1]:0", "localhost:1"])
def test_a_door_that_only_this_machine_can_reach_needs_no_tls(path, listen):
    path.write_text(f'[websocket]\nlisten = "{listen}"')
    assert load(path, {}).config.websocket.listen == listen


def test_a_key_command_that_does_not_say_for_which_vendor_is_refused(path):
    path.write_text('api_key_command = ["pass", "show", "key"]')
    with pytest.raises(ConfigError, match="must contain"):
        load(path, {})


@pytest.mark.parametrize(
    ("content", "reason"), [(b"model = x", "line 1"), (b"\xff", "utf-8"), (b"a = 1\na = 2", "overwrite")]
)
def test_a_file_that_is_not_toml_is_named_with_the_reason(path, content, reason):
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"config.toml is not valid TOML: .*{reason}"):
        load(path, {})


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*: Is a directory"):
        load(tmp_path, {})


def test_every_key_is_documented_and_takes_its_own_default():
    assert list(config.docs()) == list(config.keys())
    assert "`{provider}`" in config.docs()["api_key_command"]
    for key in config.keys().values():
        assert config.docs()[key.name].endswith(".")
        assert msgspec.convert(key.default, key.kind) == key.default
        assert key.expected


def test_a_variable_is_named_after_its_key():
    assert config.keys()["limits.idle_exit_s"].variable == "ZOT_LIMITS_IDLE_EXIT_S"
    assert config.keys()["providers.<name>.base_url"].variable is None


# --- vendors and models -----------------------------------------------------------------------------------------------


def test_a_vendor_and_its_models_are_rows(path):
    path.write_text(
        '[providers.acme]\nbase_url = "https://{REGION}.acme.example/v1"\nkey_env = ["ACME_KEY"]\n'
        'headers = {"X-Team" = "blue"}\nextra = {temperature = 0}\n'
        '[[models]]\nprovider = "acme"\nid = "m"\ncontext_window = 9000\nprices = {input = 1, output = 2.5}\n'
    )
    loaded = load(path, {})
    acme = loaded.config.providers["acme"]
    assert (acme.key_env, acme.headers, acme.extra, acme.dialect) == (
        *(("ACME_KEY",), {"X-Team": "blue"}, {"temperature": 0}, None),
    )
    (model,) = loaded.config.models
    prices = ModelPrices(input=1.0, output=2.5)
    assert model == ModelEntry(provider="acme", id="m", context_window=9000, prices=prices)
    assert loaded.warnings == []
    assert config.keys()["models"].variable is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[[models]]\nprovider = "a"', "model 1: object missing required field `id`"),
        ('[[models]]\nprovider = "a"\nid = "m"\ncontext = 3', "model 1: object contains unknown field `context`"),
        ('[[models]]\nprovider = "a"\nid = "m"\nprices = {input = 1}', "model 1, prices: object missing"),
        ('[providers.a]\ndialect = "soap"', 'providers.a.dialect must be "anthropic", "openai" or "ollama"'),
        ("[providers.a]\nheaders = {n = 3}", "providers.a.headers must be a table of strings"),
    ],
)
def test_a_bad_row_of_a_vendor_or_model_is_one_sentence_with_its_place(path, text, place):
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(place)):
        load(path, {})


@pytest.mark.parametrize("header", ["Authorization", "x-api-key", "Cookie", "X-Auth-Token"])
def test_a_header_of_a_vendor_that_would_hold_a_secret_is_refused(path, header):
    path.write_text(f'[providers.a.headers]\n{header} = "VALUE"')
    with pytest.raises(ConfigError, match="looks like a secret") as caught:
        load(path, {})
    assert "VALUE" not in str(caught.value)


# --- approvals --------------------------------------------------------------------------------------------------------


def test_rules_are_tables_in_their_order_and_match_everything_unless_they_say_what(path):
    path.write_text(
        'model = "m"\n'
        '[[rules]]\ntool = "bash"\nmatch = "git *"\naction = "allow"\n'
        '[[rules]]\ntool = "mcp_*"\naction = "deny"\n'
    )
    loaded = load(path, {"ZOT_RULES": "nonsense"})
    assert loaded.config.rules == (
        RuleEntry(tool="bash", action="allow", match="git *"),
        RuleEntry(tool="mcp_*", action="deny", match="*"),
    )
    assert (loaded.sources["rules"], loaded.warnings) == (SettingSource.FILE, [])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[[rules]]\ntool = "a"\naction = "deny"\n[[rules]]\ntool = "b"\naction = "permit"', "rule 2, action: "),
        ('[[rules]]\ntool = "a"\naction = "allow"\nmach = "x"', "rule 1: object contains unknown field `mach`"),
        ('[[rules]]\ntool = "a"', "rule 1: object missing required field `action`"),
        ('[[rules]]\ntool = ""\naction = "deny"', "rule 1, tool: "),
        ('[rules]\ntool = "a"\naction = "deny"', "optionally match"),
        ("rules = [3]", "rule 1: "),
    ],
)
def test_a_bad_rule_is_one_sentence_with_its_place(path, text, place):
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert str(caught.value).startswith(f"{path}: rules must be [[rules]] tables with tool, action")
    assert place in str(caught.value)


def test_approvals_have_a_mode_a_way_a_time_and_a_command(path):
    path.write_text('[approval]\nmode = "ask"\nunattended = "deny"\nttl_s = 60\nnotify_command = ["say", "{text}"]')
    found = load(path, {"ZOT_APPROVAL_MODE": "read-only"}).config.approval
    assert (found.mode, found.unattended, found.ttl_s, found.notify_command) == (
        *("read-only", "deny", 60.0),
        ("say", "{text}"),
    )
    assert Config().approval == config.ApprovalSection(
        mode="workspace", unattended="park", ttl_s=None, notify_command=None
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('mode = "no"', '"yolo", "workspace", "ask" or "read-only"'),
        ('unattended = "allow"', '"park", "deny" or "rules"'),
        ("ttl_s = 0", "a number of seconds greater than 0"),
        ('notify_command = "say"', "a list of strings: a program and its arguments"),
    ],
)
def test_there_is_no_other_way_to_be_unattended_and_no_other_mode(path, line, words):
    path.write_text(f"[approval]\n{line}")
    with pytest.raises(ConfigError, match=words):
        load(path, {})


def test_a_text_is_read_like_a_file_and_without_the_environment(path):
    loaded = config.parse('model = "m"', path)
    assert (loaded.config.model, loaded.sources["model"]) == ("m", SettingSource.FILE)
    with pytest.raises(ConfigError, match="not valid TOML"):
        config.parse("model", path)
