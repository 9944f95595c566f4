"""How a long engine call is stopped.

Owns: the type of the question ("has my caller lost interest?") and the one answer to a yes.
Does not own: who asks for the stop, or what is done with work that was stopped (the cascade).
Here because: recognition, language model and synthesis stop at the same kind of point in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from counterpoint.errors import StaleFence

#: Asked at every token, prefill chunk or sentence, in the engine's thread: it must be quick and not raise.
Cancelled = Callable[[], bool]


def never() -> bool:
    """The question of a caller that waits for the end."""
    return False


def stop_if(cancelled: Cancelled) -> None:
    """Raise `StaleFence` when the caller has lost interest: half a result never looks like a result."""
    if cancelled():
        raise StaleFence("the caller cancelled this engine call")
