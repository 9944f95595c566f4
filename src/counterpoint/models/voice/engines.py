"""All engines of the embedded voice, loaded once.

Owns: the order of loading and warming up, and what it costs in memory.
Does not own: how the engines work together (the cascade).
Here because: a server loads one copy before it says that it is ready, and shows how far it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np

from .asr import MoonshineAsr
from .files import VoiceFiles, find_files, require_runtime
from .llm import LanguageModel, Message
from .tts import DEFAULT_VOICE, HibariTts
from .turn_end import SmartTurn
from .vad import FRAME_SAMPLES, SAMPLE_RATE, SileroVad

#: Session name of the warm-up.
_WARM_UP: Final = "warm-up"


#: An engine that a server elsewhere may replace.
Replaceable = Literal["asr", "llm", "tts"]


class VoiceEngines:
    """The five engines, each loaded when it is first asked for. Any thread may call any of them.

    Voice activity, end of turn, recognition and synthesis keep nothing between calls, so calls run
    side by side, one core each. The language model has one fair lock around each token and prefill
    chunk: answers of several sessions grow together.
    """

    def __init__(self, files: VoiceFiles, progress: Callable[[str], None]) -> None:
        self._files = files
        self._progress = progress

    @classmethod
    def load(
        cls,
        directory: Path | None = None,
        progress: Callable[[str], None] = lambda name: None,
        *,
        llm: Path | None = None,
        without: Collection[Replaceable] = (),
    ) -> VoiceEngines:
        """Load everything, about 2 s; ``progress`` hears each engine's name before it is loaded.

        ``directory`` is where ``install`` put the weights (default: ``files.find_files``), ``llm``
        another GGUF file to run instead of the shipped one, ``without`` names engines that nobody will ask
        for. Raises `ConfigurationError` when something is not installed.
        """
        require_runtime()
        files = find_files(directory)
        engines = cls(replace(files, llm=llm) if llm else files, progress)
        engines._touch(without)
        return engines

    @cached_property
    def vad(self) -> SileroVad:
        self._progress("vad")
        return SileroVad(self._files.vad)

    @cached_property
    def turn_end(self) -> SmartTurn:
        self._progress("turn_end")
        return SmartTurn(self._files.turn_end)

    @cached_property
    def asr(self) -> MoonshineAsr:
        self._progress("asr")
        return MoonshineAsr(self._files.asr)

    @cached_property
    def llm(self) -> LanguageModel:
        self._progress("llm")
        return LanguageModel(self._files.llm)

    @cached_property
    def tts(self) -> HibariTts:
        self._progress("tts")
        return HibariTts()

    def _touch(self, without: Collection[Replaceable]) -> list[object]:
        """Every engine that will be needed, in the order in which they load."""
        loaded: list[object] = [self.vad, self.turn_end]
        if "asr" not in without:
            loaded.append(self.asr)
        if "llm" not in without:
            loaded.append(self.llm)
        if "tts" not in without:
            loaded.append(self.tts)
        return loaded

    def warm_up(self, without: Collection[Replaceable] = ()) -> None:
        """Run every engine once, so that no user pays for first-call work."""
        second = np.zeros(SAMPLE_RATE, np.float32)
        self.vad.probabilities([(self.vad.new_state(), second[:FRAME_SAMPLES])])
        self.turn_end.probability(second)
        if "asr" not in without:
            self.asr.transcribe(second)
        if "llm" not in without:
            for _ in self.llm.generate(_WARM_UP, [Message("user", "Hello.")], max_tokens=2):
                pass
            self.llm.release(_WARM_UP)
        if "tts" not in without:
            # The second word is in no dictionary: it loads what reads such words.
            self.tts.synthesize("Hello, counterpointers.", DEFAULT_VOICE)


def resident_bytes() -> int:
    """Memory of this process that is in RAM, mapped weights included; 0 where the system does not tell."""
    statistics = Path("/proc/self/status")
    if not statistics.exists():
        return 0
    lines = statistics.read_text(encoding="ascii").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(kilobytes) * 1024
