"""The right to resume a session, as something that can be checked and not read back.

Owns: token digests and their two-phase rotation (wire contract, section 3).
Does not own: entropy (tokens are passed in), whether a session may be resumed at all (``runtime``).
Here because: a token cannot reach a repr, a log or a journal if nothing holds one.

A client may lose the reply that carries its new token, so the one it presented stays good until the new one
is known to have arrived. An answer can therefore be lost any number of times and never locks a client out.
"""

from __future__ import annotations

import hashlib
import hmac

from counterpoint.errors import ResumeRefused
from counterpoint.protocol.codes import ErrorCode


class ResumeCredential:
    """One digest that was proven received, and after a resume one that was offered."""

    __slots__ = ("_digests",)

    def __init__(self, digests: tuple[bytes, ...]) -> None:
        """From a store: ``digests`` as the property gives them. Raises ``ValueError`` on any other number."""
        if not 1 <= len(digests) <= 2:
            raise ValueError("a credential has one or two digests")
        self._digests = digests

    @classmethod
    def issue(cls, token: str) -> ResumeCredential:
        """The credential of a new session: ``token`` alone is good."""
        return cls((_digest(token),))

    @property
    def digests(self) -> tuple[bytes, ...]:
        """SHA-256 of the tokens that are good: the proven one, then the offered one if there is one."""
        return self._digests

    def verify(self, token: str) -> bool:
        """Whether ``token`` is good. Takes the same time whatever the answer, and changes nothing."""
        digest = _digest(token)
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        return any(matches)

    def rotate(self, presented: str, fresh: str) -> None:
        """A resume with ``presented`` is answered with ``fresh``: these two are good from now on.

        Raises ``ResumeRefused`` (``invalid_resume_token``) if ``presented`` is not good, and changes nothing.
        """
        if not self.verify(presented):
            raise ResumeRefused(ErrorCode.INVALID_RESUME_TOKEN, "no such session, or not its token")
        self._digests = (_digest(presented), _digest(fresh))

    def prove(self) -> None:
        """The client showed that it has the newest token: that one alone is good from now on."""
        self._digests = self._digests[-1:]

    def __repr__(self) -> str:
        return f"ResumeCredential({len(self._digests)} good)"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
