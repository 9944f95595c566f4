"""Which engine or server does which stage, by configuration.

Owns: the options of the cascade, loading what is embedded, starting what is remote, the stages made of both.
Does not own: the engines (``models.voice``), installing them, the servers (``remote``).
Here because: each stage is chosen for itself, and nothing is loaded that no stage needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import structlog

from counterpoint.errors import ConfigurationError
from counterpoint.models.voice.engines import Replaceable, VoiceEngines
from counterpoint.models.voice.files import find_files, require_runtime

from .detectors import SileroDetector, SmartTurnModel
from .embedded import SENTENCES, EmbeddedVoice
from .remote.chat import ChatOptions, RemoteLanguageModel
from .remote.server import Server
from .remote.speech import RemoteSynthesizer, SpeechOptions
from .remote.transcription import RemoteTranscriber, TranscriptionOptions
from .stages import LanguageModel, Stages, Synthesizer, Transcriber

log = structlog.get_logger(__name__)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """``model.*`` of the cascade. A stage with a table of its own is a server elsewhere."""

    #: Where the weights of the voice are; where they were installed to, if not given.
    directory: str | None = None
    #: A server; or a GGUF file to run instead of the language model that ships, whose chat format is ChatML.
    llm: str | ChatOptions | None = None
    asr: TranscriptionOptions | None = None
    tts: SpeechOptions | None = None

    @property
    def remote_llm(self) -> ChatOptions | None:
        return self.llm if isinstance(self.llm, ChatOptions) else None

    @property
    def without(self) -> frozenset[Replaceable]:
        """The stages that are servers elsewhere."""
        chosen: dict[Replaceable, object] = {"asr": self.asr, "llm": self.remote_llm, "tts": self.tts}
        return frozenset(stage for stage, server in chosen.items() if server is not None)


class Assembly:
    """The stages that ``options`` name, from ``start`` to ``stop``.

    Raises ``ConfigurationError`` where a server is wrongly described, or the embedded voice is needed and not
    installed. It is needed as soon as one stage is not remote; without it nothing is lent for detection.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._directory = Path(options.directory) if options.directory else None
        self._asr = options.asr and Server("asr", options.asr)
        self._llm = options.remote_llm and Server("llm", options.remote_llm)
        self._tts = options.tts and Server("tts", options.tts)
        self._embeds = self._installed()
        self._engines: VoiceEngines | None = None
        self._voice: EmbeddedVoice | None = None

    async def start(self) -> Stages:
        if self._embeds:
            self._engines = await asyncio.to_thread(self._load)
            self._voice = EmbeddedVoice(self._engines)
        for server in self._servers():
            await server.start()
        chat = self._options.remote_llm
        return Stages(
            self._transcriber(),
            self._language_model(),
            self._synthesizer(),
            sentences=None if chat else SENTENCES,
            turns=chat.turns if chat else 2,
            tools=chat is not None,
        )

    async def stop(self) -> None:
        for server in self._servers():
            await server.stop()
        if self._voice is not None:
            await asyncio.to_thread(self._voice.stop)
            self._voice = self._engines = None

    def detectors(self) -> Sequence[object]:
        if self._engines is None:
            return ()
        return SileroDetector(self._engines.vad), SmartTurnModel(self._engines.turn_end)

    def _installed(self) -> bool:
        try:
            require_runtime()
            find_files(self._directory)
        except ConfigurationError:
            if len(self._options.without) == 3:
                return False
            raise
        return True

    def _load(self) -> VoiceEngines:
        own = self._options.llm
        without = self._options.without
        engines = VoiceEngines.load(
            self._directory,
            lambda name: log.info("loading", engine=name),
            llm=Path(own) if isinstance(own, str) else None,
            without=without,
        )
        engines.warm_up(without)
        return engines

    def _servers(self) -> list[Server]:
        return [server for server in (self._asr, self._llm, self._tts) if server]

    def _transcriber(self) -> Transcriber:
        if self._asr and self._options.asr:
            return RemoteTranscriber(self._asr, self._options.asr)
        return self._embedded().transcriber()

    def _language_model(self) -> LanguageModel:
        if self._llm and self._options.remote_llm:
            return RemoteLanguageModel(self._llm, self._options.remote_llm)
        return self._embedded().language_model()

    def _synthesizer(self) -> Synthesizer:
        if self._tts and self._options.tts:
            return RemoteSynthesizer(self._tts, self._options.tts)
        return self._embedded().synthesizer()

    def _embedded(self) -> EmbeddedVoice:
        if self._voice is None:
            raise RuntimeError("a stage is embedded, and the voice was not loaded")
        return self._voice
