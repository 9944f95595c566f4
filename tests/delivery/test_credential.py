"""The resume token: what is kept of it, and that a lost reply never locks a client out."""

from __future__ import annotations

import hashlib
import hmac
from unittest import mock

import pytest

from counterpoint.delivery.credential import ResumeCredential
from counterpoint.errors import ResumeRefused


def good(credential: ResumeCredential, *tokens: str) -> list[bool]:
    return [credential.verify(token) for token in tokens]


def test_a_new_session_has_one_token() -> None:
    assert good(ResumeCredential.issue("t1"), "t1", "t2", "") == [True, False, False]


def test_the_presented_token_stays_good_until_the_new_one_is_proven() -> None:
    credential = ResumeCredential.issue("t1")
    credential.rotate("t1", "t2")
    assert good(credential, "t1", "t2") == [True, True]
    credential.prove()
    assert good(credential, "t1", "t2") == [False, True]


def test_a_lost_reply_can_be_retried_any_number_of_times() -> None:
    credential = ResumeCredential.issue("t1")
    for number in range(2, 100):
        credential.rotate("t1", f"t{number}")
        assert good(credential, "t1", f"t{number - 1}", f"t{number}") == [True, number == 2, True]


def test_a_resume_with_the_new_token_proves_it() -> None:
    credential = ResumeCredential.issue("t1")
    credential.rotate("t1", "t2")
    credential.rotate("t2", "t3")
    assert good(credential, "t1", "t2", "t3") == [False, True, True]


def test_proving_again_changes_nothing() -> None:
    credential = ResumeCredential.issue("t1")
    credential.prove()
    credential.prove()
    assert good(credential, "t1") == [True]


def test_verifying_has_no_effect() -> None:
    credential = ResumeCredential.issue("t1")
    credential.rotate("t1", "t2")
    before = credential.digests
    good(credential, "t2", "t1", "nonsense", "\ud800")
    assert credential.digests == before


def test_a_token_that_is_not_good_rotates_nothing() -> None:
    credential = ResumeCredential.issue("t1")
    before = credential.digests
    with pytest.raises(ResumeRefused) as refused:
        credential.rotate("t0", "t2")
    assert refused.value.code == "invalid_resume_token"
    assert credential.digests == before


def test_digests_are_all_that_is_kept() -> None:
    credential = ResumeCredential.issue("secret")
    assert credential.digests == (hashlib.sha256(b"secret").digest(),)
    assert "secret" not in repr(credential)
    assert credential.digests[0].hex()[:8] not in repr(credential)


def test_a_stored_credential_is_restored_with_its_order() -> None:
    credential = ResumeCredential.issue("t1")
    credential.rotate("t1", "t2")
    restored = ResumeCredential(credential.digests)
    restored.prove()
    assert good(restored, "t1", "t2") == [False, True]


@pytest.mark.parametrize("count", [0, 3])
def test_at_most_two_digests_are_valid(count: int) -> None:
    with pytest.raises(ValueError, match="one or two"):
        ResumeCredential((b"digest",) * count)


def test_every_digest_is_compared_in_constant_time_whichever_matches() -> None:
    credential = ResumeCredential.issue("t1")
    credential.rotate("t1", "t2")
    for token in ("t1", "t2", "t3"):
        with mock.patch.object(hmac, "compare_digest", wraps=hmac.compare_digest) as compare:
            credential.verify(token)
        assert compare.call_count == 2
