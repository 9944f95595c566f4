"""What a language model is told: instructions, a little history, what the user said.

Owns: how much of the history is kept, and that prompts grow at their end.
Does not own: the words of spoken input (``hearing``), tokens and their limit (each language model).
Here because: a small model is distracted by history and slow to read it; what it has read must stay in front.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from counterpoint.plugins.contract import HistoryItem

from .stages import Message, Role, Stages, ToolUse

#: What is said when nothing was understood; a model would answer something that nobody asked.
SORRY: Final = "Sorry, I did not catch that."

_ROLES: Final[Mapping[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}

#: Said in front of the client's instructions.
MANNER: Final = "You are a helpful voice assistant. Answer in one or two short sentences, in plain words."


async def conversation(
    history: Sequence[HistoryItem],
    instructions: str,
    words: Callable[[HistoryItem], Awaitable[str]],
    stages: Stages,
    *,
    turn_to_come: bool = False,
) -> list[Message]:
    """The messages for an answer to ``history``; ``words`` finds what an item says.

    Only the last message may be without words (``is_unheard``). A call is told together with its
    result, where that stands; one without a result is not told: language models refuse such a prompt.

    With ``turn_to_come``, the beginning that they will have once the user has spoken again.
    """
    calls = {item.call_id: item for item in history if item.type == "function_call"} if stages.tools else {}
    messages = [Message("system", f"{MANNER} {instructions}".strip())]
    for item in _kept(history, stages.turns, turn_to_come):
        if item.type == "message" and item.role is not None:
            messages.append(Message(_ROLES[item.role], (await words(item)).strip()))
        elif item.type == "function_call_output" and (call := calls.get(item.call_id)) is not None:
            messages.append(Message("assistant", "", _use(call, item)))
    return [message for message in messages[:-1] if message.text or message.use] + messages[-1:]


def is_unheard(messages: Sequence[Message]) -> bool:
    """The user spoke last, and no word of it was understood."""
    return messages[-1].role == "user" and not messages[-1].text


def _use(call: HistoryItem, result: HistoryItem) -> ToolUse:
    return ToolUse(call.call_id or "", call.name or "", call.arguments or "", result.output or "")


def _kept(history: Sequence[HistoryItem], turns: int, turn_to_come: bool) -> Sequence[HistoryItem]:
    """The newest turns of ``history``, each begun by the user, and what the system said at any time.

    As many are dropped at a time as are kept at least, so that most prompts only add to the one before.
    """
    begins = [index for index, item in enumerate(history) if item.role == "user"]
    dropped = max(0, len(begins) + turn_to_come - turns) // turns * turns
    start = begins[dropped] if dropped else 0
    return [item for index, item in enumerate(history) if index >= start or item.role == "system"]
