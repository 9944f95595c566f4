"""All engines of the embedded voice, loaded once.

Owns: the order of loading and warming up, and what it costs in memory.
Does not own: how the engines work together (the cascade).
Here because: a server loads one copy before it says that it is ready, and shows how far it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from .asr import MoonshineAsr
from .files import find_files, require_runtime
from .llm import LanguageModel, Message
from .tts import DEFAULT_VOICE, HibariTts
from .turn_end import SmartTurn
from .vad import FRAME_SAMPLES, SAMPLE_RATE, SileroVad

#: Session name of the warm-up.
_WARM_UP: Final = "warm-up"


@dataclass(frozen=True, slots=True)
class VoiceEngines:
    """The five engines. Any thread may call any of them.

    Voice activity, end of turn, recognition and synthesis keep nothing between calls, so calls run
    side by side, one core each. The language model has one fair lock around each token and prefill
    chunk: answers of several sessions grow together.
    """

    vad: SileroVad
    turn_end: SmartTurn
    asr: MoonshineAsr
    llm: LanguageModel
    tts: HibariTts

    @classmethod
    def load(
        cls,
        directory: Path | None = None,
        progress: Callable[[str], None] = lambda name: None,
        *,
        llm: Path | None = None,
    ) -> VoiceEngines:
        """Load everything, about 2 s; ``progress`` hears each engine's name before it is loaded.

        ``directory`` is where ``install`` put the weights (default: ``files.find_files``), ``llm``
        another GGUF file to run instead of the shipped one. Raises `ConfigurationError` when something
        is not installed.
        """
        require_runtime()
        files = find_files(directory)
        progress("vad")
        vad = SileroVad(files.vad)
        progress("turn_end")
        turn_end = SmartTurn(files.turn_end)
        progress("asr")
        asr = MoonshineAsr(files.asr)
        progress("llm")
        model = LanguageModel(llm or files.llm)
        progress("tts")
        return cls(vad, turn_end, asr, model, HibariTts())

    def warm_up(self) -> None:
        """Run every engine once, so that no user pays for first-call work."""
        second = np.zeros(SAMPLE_RATE, np.float32)
        self.vad.probabilities([(self.vad.new_state(), second[:FRAME_SAMPLES])])
        self.turn_end.probability(second)
        self.asr.transcribe(second)
        for _ in self.llm.generate(_WARM_UP, [Message("user", "Hello.")], max_tokens=2):
            pass
        self.llm.release(_WARM_UP)
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
