"""What a tool asks for while its call runs: an answer of a person, or leave to ask the session's model."""

from zotd.core.model_questions import ModelQuestion, QuestionReply
from zotd.core.permissions import Action, PermissionQuery, Ruling
from zotd.core.person_questions import NOBODY, QUESTION, PersonAnswer, PersonQuestion, words_of
from zotd.permissions.authorization import Authorization


async def ask_person(authorization: Authorization, key: str, question: PersonQuestion) -> PersonAnswer:
    """Have a person answer what the call `key` asks. Safe to cancel."""
    ruling = Ruling(Action.ASK, "mode", f"{question.by} asks a question")
    query = PermissionQuery(QUESTION, None, is_safe=False, args=question.fields)
    answer = await authorization.ask_during(key, ruling, query, words_of(question), has_choices=False)
    if answer is None:
        return NOBODY
    if not answer.allowed:
        return PersonAnswer("decline") if answer.by else NOBODY
    return PersonAnswer("accept", dict(question.fields) if answer.args is None else answer.args)


async def why_not(authorization: Authorization, key: str, question: ModelQuestion) -> QuestionReply | None:
    """Return the refusal of what the call `key` wants to ask the model; None: it may, by the rules, or as a person says.

    Safe to cancel.
    """
    query = PermissionQuery(question.tool, question.by, is_safe=False, args={"max_tokens": question.max_tokens})
    ruling = authorization.judge(key, query)
    if ruling.action is Action.ALLOW:
        return None
    if ruling.action is Action.DENY:
        return QuestionReply("decline", reason="the rules of this session do not allow it")
    ruling = Ruling(Action.ASK, ruling.source, f"{question.by} asks the model")
    answer = await authorization.ask_during(key, ruling, query, question.shown(), has_choices=True)
    if answer is None:
        return QuestionReply("cancel", reason="nobody can be asked whether it may")
    if answer.allowed:
        return None
    return QuestionReply("decline" if answer.by else "cancel", reason="the user does not want it")
