"""Audio of a conversation, as much of it as there is room for.

Owns: the bytes, their bound, which leave first.
Does not own: what is known of audio that left (its length and its words stay in ``conversation``).
Here because: audio is the only part of a history that is large (wire contract, ``max_history_audio_bytes``).
"""

from __future__ import annotations

#: An item's id and the index of its content part.
Key = tuple[str, int]


class AudioShelf:
    """Audio by key, at most ``max_bytes`` of it; when there is more, the audio opened first leaves whole."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._chunks: dict[Key, list[bytes]] = {}
        self._sizes: dict[Key, int] = {}
        self._total = 0

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._total

    def open(self, key: Key) -> None:
        """Audio ``key`` begins."""
        self._chunks[key] = []
        self._sizes[key] = 0

    def append(self, key: Key, audio: bytes) -> None:
        """More of ``key``; ignored when it has left already: audio with a hole is worth nothing."""
        chunks = self._chunks.get(key)
        if chunks is None:
            return
        chunks.append(audio)
        self._sizes[key] += len(audio)
        self._total += len(audio)
        while self._total > self._max_bytes:
            self.drop(next(iter(self._chunks)))

    def get(self, key: Key) -> bytes | None:
        """All audio of ``key``; None when it left or never was."""
        chunks = self._chunks.get(key)
        if chunks is None:
            return None
        chunks[:] = [b"".join(chunks)]
        return chunks[0]

    def cut(self, key: Key, size: int) -> None:
        """Keep the first ``size`` bytes of ``key``."""
        audio = self.get(key)
        if audio is None:
            return
        self._chunks[key] = [audio[:size]]
        self._total -= self._sizes[key] - len(audio[:size])
        self._sizes[key] = len(audio[:size])

    def drop(self, key: Key) -> None:
        """Forget ``key``. Nothing happens when it left already."""
        if self._chunks.pop(key, None) is not None:
            self._total -= self._sizes.pop(key)
