"""What an answer will be asked for: options, configuration and history, put together.

Owns: ``Plan``, the rules of ``response.create`` options, the history that a model is given.
Does not own: starting the response (``responses``), when one is due (``turns``).
Here because: an answer that is prepared during a pause and the one that is asked for after it must be the
same request, so both are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Fence, HistoryItem, ResponseRequest
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.config import SessionConfig, SessionType
from counterpoint.protocol.ids import IdSource
from counterpoint.protocol.items import FunctionCall, FunctionCallOutput, Item, ItemReference
from counterpoint.protocol.response_options import ResponseOptions

from .audio_shelf import AudioShelf
from .conversation import Conversation, results_behind_calls
from .given import complete
from .playback import PlaybackLedger
from .records import CALL, RESULT, Given
from .state import RunState
from .tools import ToolLedger

#: What a plugin makes of a configuration (``ModelPlugin.validate``).
Validate = Callable[[SessionConfig, SessionConfig | None], SessionConfig]


@dataclass(frozen=True, slots=True)
class Plan:
    """A response before it starts. ``input`` is the newest committed utterance, 0 if there is none."""

    config: SessionConfig
    history: tuple[HistoryItem, ...]
    input: int
    out_of_band: bool = False
    metadata: dict[str, Any] | None = None
    response_id: str = ""  #: empty: a new one
    continues: str | None = None  #: the response that was falsely interrupted

    def request(self, fence: Fence, nth: int = 1) -> ResponseRequest:
        """What the model is asked for; ``nth`` under its ``extra_body``."""
        config = self.config
        return ResponseRequest(
            fence=fence,
            number=fence.turn,
            history=self.history,
            instructions=config.instructions,
            modalities=config.output_modalities,
            voice=config.audio.output.voice,
            tools=config.tools,
            tool_choice=config.tool_choice,
            max_output_tokens=config.max_output_tokens,
            input=self.input,
            extra=config.extra_body,
            out_of_band=self.out_of_band,
            nth=nth,
        )


class Planner:
    def __init__(
        self,
        state: RunState,
        ids: IdSource,
        conversation: Conversation,
        ledger: PlaybackLedger,
        tools: ToolLedger,
        validate: Validate,
    ) -> None:
        self._state = state
        self._ids = ids
        self._conversation = conversation
        self._ledger = ledger
        self._tools = tools
        self._validate = validate
        #: Number of the newest committed utterance; written by ``turns``.
        self.last_input = 0

    # ------------------------------------------------------------------ plans

    def turn(self, input: int, until: str, response_id: str = "", continues: str | None = None) -> Plan:
        """The answer to the turn that ends with item ``until``; later items are not for it (invariant 84)."""
        history = self._history()
        end = next((i + 1 for i, item in enumerate(history) if item.id == until), len(history))
        return Plan(self._effective(), history[:end], input, response_id=response_id, continues=continues)

    def upcoming(self, item: HistoryItem, input: int) -> Plan:
        """The answer to an utterance that has not been committed, as it will be if it is committed now."""
        return Plan(self._effective(), (*self._history(), item), input)

    def unasked(self) -> Plan:
        """What a native model says by itself: it has heard all that there is."""
        return Plan(self._effective(), (), 0)

    def asked(self, options: ResponseOptions) -> Plan:
        """The answer that ``response.create`` asks for.

        Raises ``ProtocolError``; whether another response is active is not looked at.
        """
        if self._state.config.type is SessionType.TRANSCRIPTION:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "a transcription session has no responses")
        history = self._history() if options.input is None else self._given(options.input)
        if options.out_of_band and self._state.native:
            message = "the model has one voice, and it is in the conversation"
            raise ProtocolError(ErrorCode.UNSUPPORTED, message, param="response.conversation")
        if not self._state.capabilities.text_input and (self._state.native or not history):
            raise ProtocolError(ErrorCode.RESPONSE_CREATE_WITHOUT_INPUT, "there is nothing to answer yet")
        config = self._effective(options)
        return Plan(config, history, self.last_input, options.out_of_band, options.metadata)

    def conversation_text(self) -> str:
        """What was said and heard so far, a line each: all that a new model side needs to know."""
        return "\n".join(f"{item.role}: {item.text}" for item in self._history() if item.role and item.text)

    # ------------------------------------------------------------------ parts

    def _effective(self, options: ResponseOptions | None = None) -> SessionConfig:
        """What holds for one response: its options where the model can, else what the model does instead."""
        config = self._state.config
        return config if options is None else self._validate(options.over(config), config)

    def _history(self) -> tuple[HistoryItem, ...]:
        now = self._state.now
        return self._conversation.history(lambda item_id: self._ledger.heard(item_id, now))

    def _given(self, entries: tuple[Item | ItemReference, ...]) -> tuple[HistoryItem, ...]:
        """The ``input`` of a response, which takes the place of the conversation."""
        known = {item.id: item for item in self._history()}
        history: list[HistoryItem] = []
        for index, entry in enumerate(entries):
            param = f"response.input[{index}]"
            if isinstance(entry, ItemReference):
                if entry.id not in self._conversation:
                    raise _refused(f"{param}.id", "there is no such item")
                history += [known[entry.id]] if entry.id in known else []
            else:
                self._check_call(entry, entries, param)
                history.append(_as_history(complete(entry, self._state, self._ids, param)))
        return results_behind_calls(_with_calls(history, known.values()))

    def _check_call(self, entry: Item, entries: tuple[Item | ItemReference, ...], param: str) -> None:
        """A result must belong to a call, of the conversation or among the entries (case G-02)."""
        if not isinstance(entry, FunctionCallOutput) or self._tools.state(entry.call_id) is not None:
            return
        if not any(isinstance(other, FunctionCall) and other.call_id == entry.call_id for other in entries):
            code = ErrorCode.UNKNOWN_FUNCTION_CALL_OUTPUT
            raise ProtocolError(code, "there is no such call", param=f"{param}.call_id")


def _as_history(item: Item) -> HistoryItem:
    """``item`` as a model sees it, without being part of the conversation."""
    shelf = AudioShelf(max_bytes=2**62)
    return Given(item, None, shelf).history(shelf)


def _with_calls(entries: list[HistoryItem], known: Collection[HistoryItem]) -> list[HistoryItem]:
    """``entries`` and, in front of a result that came without its call, the call of the conversation."""
    named = {entry.call_id for entry in entries if entry.type == CALL}
    calls = {entry.call_id: entry for entry in known if entry.type == CALL and entry.call_id not in named}
    complete_entries: list[HistoryItem] = []
    for entry in entries:
        if entry.type == RESULT and (call := calls.pop(entry.call_id, None)) is not None:
            complete_entries.append(call)
        complete_entries.append(entry)
    return complete_entries


def _refused(param: str, message: str) -> ProtocolError:
    return ProtocolError(ErrorCode.INVALID_EVENT, f"{param}: {message}", param=param)
