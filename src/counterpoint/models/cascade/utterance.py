"""One utterance of the user: fed while it is spoken, put into words when they are needed.

Owns: the words of an utterance, asked for once and reused until more speech makes them void.
Does not own: recognition (a ``Transcription``), when an utterance ends (``session``).
Here because: the answer prepared in a pause, the transcript and later answers all need the same words, and
recognition must run once for them.
"""

from __future__ import annotations

from counterpoint.plugins.contract import Fence

from .loudness import SpeechLevel
from .shared import Shared
from .stages import Transcription


class Utterance:
    """What was said between two commits."""

    def __init__(self, name: int | str, transcription: Transcription) -> None:
        #: That of the push that committed it; None while it goes on.
        self.fence: Fence | None = None
        #: Its words are being told, or were, so that no second task does it.
        self.told = False
        self._name = name
        self._transcription = transcription
        self._level = SpeechLevel()
        self._text: Shared[str] | None = None
        #: Audio came after its words were asked for: silence, as far as loudness tells.
        self._more = False

    @property
    def busy(self) -> bool:
        """Somebody waits for its words."""
        return self._text is not None and not self._text.done

    def feed(self, pcm: bytes) -> bool:
        """More audio, int16 at 16 kHz. True if it is speech, which voids what was made of the utterance."""
        self._transcription.feed(pcm)
        self._more = True
        return self._level.is_speech(pcm) and self.refresh()

    def refresh(self) -> bool:
        """Forget its words if they leave out audio. True if there are none now."""
        if self._text is not None and self._more:
            self._text.cancel()
            self._text = None
        return self._text is None

    async def text(self) -> str:
        """Its words. Raises what recognition raised. Cancelling one who waits leaves the others waiting."""
        if self._text is None:
            self._more = False
            self._text = Shared(self._transcription.text(), f"words of {self._name}")
        return await self._text.result()

    def cancel(self) -> None:
        """Nobody needs it any more."""
        if self._text is not None:
            self._text.cancel()
        self._transcription.cancel()

    async def aclose(self) -> None:
        """Cancel, and return when its recognition has stopped."""
        self.cancel()
        if self._text is not None:
            await self._text.aclose()
