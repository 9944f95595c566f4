"""Ended sessions are known by their token for a while, and to nobody else (wire contract, section 2)."""

from counterpoint.delivery.credential import ResumeCredential
from counterpoint.runtime.ended import KEEP_MOST, KEEP_S, EndedSessions


def test_only_the_right_token_of_the_right_principal_learns_that_it_ended() -> None:
    ended = EndedSessions()
    ended.remember("s", ResumeCredential.issue("good"), "alice", 0.0)
    assert ended.knows("s", "good", "alice", 1.0)
    assert not ended.knows("s", "bad", "alice", 1.0)
    assert not ended.knows("s", "good", "bob", 1.0)
    assert not ended.knows("other", "good", "alice", 1.0)


def test_they_are_forgotten_after_their_time() -> None:
    ended = EndedSessions()
    ended.remember("s", ResumeCredential.issue("good"), "", 0.0)
    assert ended.knows("s", "good", "", KEEP_S - 1)
    assert not ended.knows("s", "good", "", KEEP_S)
    assert len(ended) == 0


def test_there_are_at_most_so_many_and_the_oldest_go_first() -> None:
    ended = EndedSessions()
    credential = ResumeCredential.issue("t")
    for number in range(KEEP_MOST + 5):
        ended.remember(str(number), credential, "", 0.0)
    assert len(ended) == KEEP_MOST
    assert not ended.knows("0", "t", "", 1.0)
    assert ended.knows(str(KEEP_MOST + 4), "t", "", 1.0)
