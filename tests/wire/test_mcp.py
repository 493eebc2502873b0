import pytest

from zotd.wire.mcp import McpServer, ServerError, expanded, secrets, variables


def test_variables_are_replaced_in_every_field():
    server = McpServer("${A}", ("x${A}y${B:-b}",), {"N": "${A}"}, "${A}", "", {"H": "${A}"})
    assert expanded(server, {"A": "1"}) == McpServer("1", ("x1yb",), {"N": "1"}, "1", "", {"H": "1"})


@pytest.mark.parametrize(
    ("text", "env", "result"),
    [
        ("${A:-b}", {}, "b"),
        ("${A:-b}", {"A": ""}, "b"),
        ("${A:-b}", {"A": "c"}, "c"),
        ("${A:-}", {}, ""),
        ("${A}", {"A": ""}, ""),
        ("${A}", {"A": "${B}", "B": "no"}, "${B}"),
        ("${A:-http://x:1/}", {}, "http://x:1/"),
        ("$A ${1} ${a.b} {A}", {}, "$A ${1} ${a.b} {A}"),
    ],
)
def test_a_variable_has_its_value_or_default(text, env, result):
    assert expanded(McpServer(command="x", args=(text,)), env).args == (result,)


def test_a_variable_that_is_not_set_is_an_error_that_names_it():
    with pytest.raises(ServerError, match="names the variable NOPE, which is not set"):
        expanded(McpServer(command="x", args=("${NOPE}",)), {})


def test_variables_are_listed_without_duplicates():
    assert variables(McpServer(command="${B}", args=("${A}", "${B:-x}"))) == ("B", "A")


def test_secrets_are_values_of_variables_env_and_headers():
    server = McpServer(url="https://x/${KEY}", env={"A": "1"}, headers={"B": "2 ${KEY}"})
    assert set(secrets(server, {"KEY": "k"})) == {"k", "1", "2 ${KEY}"}
