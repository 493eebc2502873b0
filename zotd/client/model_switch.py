"""A switch to another model as a line for the user."""


def sentence(model: str, *, own: bool, reason: str) -> str:
    """Return why `model` is asked from now on; `own` and `reason` as in the event `model_switched`."""
    if not reason:
        return f"{model} answers again"
    return f"{reason.rstrip('.')}; {'back to' if own else 'going on with'} {model}"
