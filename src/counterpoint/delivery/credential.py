"""The right to resume a session, as something that can be checked but not read back.

Owns: token digests and their two-phase rotation (wire contract, section 3).
Does not own: entropy (tokens are passed in), whether a session may be resumed at all (``runtime``).
Here because: a token reaches no repr, log or journal if nothing holds one.
"""

from __future__ import annotations


class ResumeCredential:
    """One or two valid digests: the proven one and, after a resume, the offered one."""

    def __init__(self, digests: tuple[bytes, ...]) -> None:
        raise NotImplementedError

    @classmethod
    def issue(cls, token: str) -> ResumeCredential:
        """The credential of a new session, good for ``token`` alone."""
        raise NotImplementedError

    @property
    def digests(self) -> tuple[bytes, ...]:
        """For the store: one or two SHA-256 digests, the proven one first."""
        raise NotImplementedError

    def verify(self, token: str) -> bool:
        """Whether ``token`` is good, in constant time and without effect."""
        raise NotImplementedError

    def rotate(self, presented: str, fresh: str) -> None:
        """A resume with ``presented`` succeeded and is answered with ``fresh``: these two are good from now on."""
        raise NotImplementedError

    def prove(self) -> None:
        """The newest token was received: it alone is good from now on."""
        raise NotImplementedError
