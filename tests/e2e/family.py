"""A model that answers a session and its subagents, each by its own script."""

from zotd.testing.script import CallPart, Refusal, calls

OPENING = {"provider": "ollama", "model": "m", "secrets": None}
"""Needs no key, so that the session also goes on in the next daemon."""


class Cast:
    """The script of `ModelServer`: answers by the prompt that a conversation begins with, one for each reply so far."""

    def __init__(self, **parts):
        """`parts`: the answers to conversations whose first prompt is that name; an answer may be a function of the request."""
        self.parts = parts

    def __call__(self, request):
        said = sum(message["role"] == "assistant" for message in request.messages)
        name = prompt_of(request)
        answers = self.parts.get(name, [])
        if said >= len(answers):
            return Refusal(400, f"the script has no answer {said + 1} of {name}")
        answer = answers[said]
        return answer(request) if callable(answer) else answer


def prompt_of(request):
    """The words of the first prompt of a conversation."""
    first = next(message for message in request.messages if message["role"] == "user")
    content = first["content"]
    words = content if isinstance(content, str) else content[0]["text"]
    return words.split("\n")[0]


def results_of(request):
    """The results of calls that a request has, without the word that marks an error."""
    return [one["content"].removeprefix("Error: ") for one in request.messages if one["role"] == "tool"]


def task(prompt, **args):
    return CallPart("task", {"prompt": prompt, "description": f"does {prompt}", **args})


def tasks(*prompts, **args):
    """A reply that has a subagent do each of these."""
    return calls(*(task(prompt, **args) for prompt in prompts))


def of(server, name):
    """The requests of the conversation that begins with that prompt."""
    return [request for request in server.requests if prompt_of(request) == name]


def tools_of(request):
    return [tool["function"]["name"] for tool in request.body.get("tools", [])]


def then(first, *later):
    """An answer that is `first` when it is asked for the first time, and then those of `later`."""
    left = [first, *later]
    return lambda _: left.pop(0) if len(left) > 1 else left[0]
