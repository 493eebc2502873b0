"""An agent that may run the tests, and change nothing."""

from zot import Agent, Allow, CallContext, Deny


def decide(name: str, args: dict[str, object], context: CallContext) -> Allow | Deny:
    """Allow nothing but the tests; the agent may read without asking."""
    print(name, context.preview, sep=": ")
    return Allow() if args.get("command") == "make test" else Deny("run `make test`, and change nothing")


print(Agent(can_use_tool=decide).run_sync("Which tests fail, and why?").text)
