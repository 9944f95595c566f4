"""All engines of the embedded voice, loaded once.

Owns: the order of loading and warming up, and what it costs in memory.
Does not own: how they work together (the cascade).
Here because: a server loads one copy before it says that it is ready, and shows how far it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .asr import MoonshineAsr
from .llm import LanguageModel
from .tts import HibariTts
from .turn_end import SmartTurn
from .vad import SileroVad


@dataclass(frozen=True, slots=True)
class VoiceEngines:
    """The five engines; every one may be called from any thread."""

    vad: SileroVad
    turn_end: SmartTurn
    asr: MoonshineAsr
    llm: LanguageModel
    tts: HibariTts

    @classmethod
    def load(
        cls,
        directory: Path | None = None,
        *,
        llm: Path | None = None,
        progress: Callable[[str], None] = lambda name: None,
    ) -> VoiceEngines:
        """Load everything; ``progress`` hears each engine's name before it is loaded. ``llm`` is another GGUF file."""
        raise NotImplementedError

    def warm_up(self) -> None:
        """Run every engine once, so that no user pays for first-call work."""
        raise NotImplementedError


def resident_bytes() -> int:
    """Memory that this process holds now."""
    raise NotImplementedError
