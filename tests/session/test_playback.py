"""The playback ledger (invariants 111 to 120, wire contract, section 7, cases F and E-04)."""

from __future__ import annotations

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Mark
from counterpoint.protocol.config import PlaybackCommitPolicy
from counterpoint.protocol.events import PlaybackAcknowledged, PlaybackPositions
from counterpoint.session.playback import (
    ACKNOWLEDGED_FOR_S,
    MAX_EARLY,
    MAX_RESPONSES,
    Cut,
    PlaybackLedger,
    Spoken,
)

RATE = 24_000
MS = RATE // 1000

ACK_ONLY = PlaybackCommitPolicy.ACK_ONLY
AUTO = PlaybackCommitPolicy.AUTO
ON_DONE = PlaybackCommitPolicy.COMMIT_ALL_ON_DONE


def ledger_of(policy: PlaybackCommitPolicy = ACK_ONLY, alignment: str = "marks") -> PlaybackLedger:
    return PlaybackLedger(RATE, alignment, policy)


def speak(
    ledger: PlaybackLedger,
    item_id: str = "item",
    *,
    response_id: str = "resp",
    ms: int = 1000,
    chars: int = 100,
    now: float = 0.0,
    done: bool = True,
) -> None:
    """A response of one item, generated and handed over in one burst."""
    ledger.begin(response_id, RATE, now)
    speak_item(ledger, item_id, response_id, ms, chars, now)
    if done:
        ledger.done(response_id)


def speak_item(
    ledger: PlaybackLedger, item_id: str, response_id: str, ms: int, chars: int, now: float = 0.0
) -> None:
    ledger.add_part(response_id, item_id)
    ledger.append(item_id, ms * MS, chars)
    ledger.complete(item_id)
    ledger.sent(item_id, ms * MS, chars, now)


def cut(item_id: str, ms: int, chars: int) -> Cut:
    return Cut(item_id, ms * MS, ms, chars, model_samples=ms * MS)


def positions(
    ledger: PlaybackLedger, response_id: str = "resp", now: float = 0.0
) -> tuple[int, int, int, int]:
    return _tuple(ledger.positions(response_id, now))


def _tuple(playback: PlaybackPositions) -> tuple[int, int, int, int]:
    return playback.generated_ms, playback.sent_ms, playback.played_ms, playback.committed_ms


def acknowledged(answer: PlaybackAcknowledged | None) -> tuple[int, int, int, int]:
    assert answer is not None
    return _tuple(answer.playback)


# --------------------------------------------------------------------------- positions


def test_audio_is_generated_then_sent_then_played_then_committed() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 800 * MS, 80)
    assert positions(ledger) == (800, 0, 0, 0)
    ledger.sent("item", 480 * MS, 80, 0.0)
    assert positions(ledger) == (800, 480, 0, 0)
    ledger.acknowledge_item("item", 200, 0.0)
    assert positions(ledger) == (800, 480, 200, 200)


def test_nothing_is_known_of_an_unknown_response() -> None:
    assert positions(ledger_of(), "foreign") == (0, 0, 0, 0)


def test_marks_count_from_their_delta_at_the_rate_of_the_model() -> None:
    """Invariant 114: shifted by the audio and the text that were there before."""
    ledger = PlaybackLedger(16_000, "marks", ACK_ONLY)
    ledger.begin("resp", 8_000, 0.0)
    ledger.add_part("resp", "item")
    for _ in range(2):
        ledger.append("item", 8_000, 10, [Mark(samples=8_000, chars=10)])
    ledger.sent("item", 16_000, 20, 0.0)
    heard = {}
    for ms in (250, 500, 1000, 1250, 1500, 2000):
        ledger.acknowledge_item("item", ms, 0.0)
        heard[ms] = ledger.heard("item", 0.0)
    assert heard == {250: 5, 500: 10, 1000: 15, 1250: 17, 1500: 20, 2000: 20}


def test_a_mark_between_two_samples_claims_the_later() -> None:
    """CASE-INV-11: rounding may lose a sample's worth of text, never add it."""
    ledger = PlaybackLedger(24_000, "marks", ACK_ONLY)
    ledger.begin("resp", 8_000, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 8_000, 10, [Mark(samples=23_000, chars=10)])  # 7666 2/3 samples
    ledger.sent("item", 7_666, 10, 0.0)
    ledger.acknowledge_item("item", 10_000, 0.0)
    assert ledger.heard("item", 0.0) == 9


def test_text_ahead_of_its_audio_is_not_heard_before_it() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 0, 100, [Mark(samples=1000 * MS, chars=100)])
    ledger.append("item", 80 * MS, 0)
    ledger.sent("item", 80 * MS, 100, 0.0)
    ledger.acknowledge_item("item", 80, 0.0)
    assert ledger.heard("item", 0.0) == 8


def test_text_that_was_not_handed_over_was_not_heard() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 1000 * MS, 100)
    ledger.complete("item")
    ledger.sent("item", 1000 * MS, 60, 0.0)
    ledger.acknowledge_item("item", 1000, 0.0)
    assert ledger.heard("item", 0.0) == 60
    assert not ledger.fully_heard("item", 0.0)


def test_unaligned_text_is_committed_when_all_of_it_was_heard() -> None:
    """Invariant 113."""
    ledger = ledger_of(alignment="none")
    speak(ledger)
    ledger.acknowledge_item("item", 999, 0.0)
    assert (ledger.heard("item", 0.0), positions(ledger)) == (0, (1000, 1000, 999, 0))
    ledger.acknowledge_item("item", 1000, 0.0)
    assert (ledger.heard("item", 0.0), positions(ledger)) == (100, (1000, 1000, 1000, 1000))


# --------------------------------------------------------------------------- acknowledgements


@pytest.mark.parametrize("played_ms", [-1, 0, 999_999_999])
def test_impossible_acknowledgements_are_clamped(played_ms: int) -> None:
    """Invariant 111, case F-07: answered with the positions in force, never refused."""
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 1000 * MS, 100)
    ledger.sent("item", 400 * MS, 40, 0.0)
    ledger.acknowledge_item("item", 100, 0.0)
    played = 400 if played_ms > 0 else 100
    assert acknowledged(ledger.acknowledge_item("item", played_ms, 0.0)) == (1000, 400, played, played)


def test_a_claim_to_more_than_was_sent_does_not_grow_by_itself() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 1000 * MS, 100)
    ledger.sent("item", 400 * MS, 40, 0.0)
    ledger.acknowledge_item("item", 5000, 0.0)
    ledger.sent("item", 1000 * MS, 100, 0.0)
    assert positions(ledger) == (1000, 1000, 400, 400)


def test_the_last_whole_millisecond_means_the_end() -> None:
    """Durations are rounded down on the wire (case F-09): otherwise nothing could ever be heard whole."""
    ledger = ledger_of()
    ledger.begin("resp", 22_050, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 22_049, 100)
    ledger.complete("item")
    ledger.sent("item", 22_049, 100, 0.0)
    answer = ledger.acknowledge_item("item", 999, 0.0)
    assert answer is not None
    assert answer.history_committed
    assert ledger.fully_heard("item", 0.0)


def test_acknowledgements_of_a_response_run_over_its_items() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    for item_id, ms in (("first", 500), ("second", 300), ("third", 200)):
        speak_item(ledger, item_id, "resp", ms, 10)
    reached = []
    for played_ms in (0, 200, 500, 650, 1000):
        answer = ledger.acknowledge_response("resp", played_ms, 0.0)
        assert answer is not None
        reached.append((answer.item_id, answer.playback.played_ms, ledger.positions("resp", 0.0).played_ms))
    assert reached == [
        ("first", 0, 0),
        ("first", 200, 200),
        ("first", 500, 500),
        ("second", 150, 650),
        ("third", 200, 1000),
    ]


def test_an_acknowledgement_that_skips_an_item_claims_only_its_own() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    for item_id in ("first", "second"):
        speak_item(ledger, item_id, "resp", 500, 10)
    ledger.acknowledge_item("second", 500, 0.0)
    assert (ledger.heard("first", 0.0), ledger.heard("second", 0.0)) == (0, 10)


def test_foreign_and_mismatching_acknowledgements_are_ignored() -> None:
    """Invariant 117, case F-07."""
    ledger = ledger_of()
    speak(ledger)
    assert ledger.acknowledge_item("user_item", 500, 0.0) is None
    assert ledger.acknowledge_item("item", 500, 0.0, response_id="other") is None
    assert ledger.acknowledge_item("item", 500, 0.0, content_index=1) is None
    assert ledger.acknowledge_response("other", 500, 0.0) is None
    assert positions(ledger) == (1000, 1000, 0, 0)
    assert acknowledged(ledger.acknowledge_item("item", 500, 0.0, response_id="resp")) == (
        1000,
        1000,
        500,
        500,
    )


def test_a_response_without_audio_has_nothing_to_acknowledge() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    assert ledger.acknowledge_response("resp", 100, 0.0) is None


def test_an_acknowledgement_after_the_response_and_after_later_ones_counts() -> None:
    """Cases F-06 and F-07: ``response.done`` is not the end of playback."""
    ledger = ledger_of()
    speak(ledger)
    speak(ledger, "later", response_id="resp_2")
    assert acknowledged(ledger.acknowledge_item("item", 700, 0.0)) == (1000, 1000, 700, 700)


def test_an_acknowledgement_before_the_item_exists_is_remembered() -> None:
    """Invariant 115."""
    ledger = ledger_of()
    ledger.acknowledge_item("item", 600, 0.0)
    ledger.acknowledge_item("item", 300, 0.0)
    speak(ledger)
    assert positions(ledger) == (1000, 1000, 600, 600)


def test_remembered_acknowledgements_are_bounded() -> None:
    ledger = ledger_of()
    for number in range(MAX_EARLY + 1):
        ledger.acknowledge_item(f"item_{number}", 600, 0.0)
    ledger.begin("resp", RATE, 0.0)
    for number in (0, 1):
        speak_item(ledger, f"item_{number}", "resp", 1000, 10)
    assert (ledger.heard("item_0", 0.0), ledger.heard("item_1", 0.0)) == (0, 6)


# --------------------------------------------------------------------------- policies


def test_ack_only_believes_nobody_but_the_client() -> None:
    ledger = ledger_of(ACK_ONLY)
    speak(ledger)
    assert positions(ledger, now=99.0) == (1000, 1000, 0, 0)
    assert ledger.is_playing(99.0)


def test_commit_all_on_done_commits_with_the_end_of_the_response() -> None:
    ledger = ledger_of(ON_DONE)
    speak(ledger, done=False)
    ledger.acknowledge_item("item", 300, 0.0)
    assert positions(ledger) == (1000, 1000, 300, 300)
    ledger.done("resp")
    assert positions(ledger) == (1000, 1000, 1000, 1000)
    assert not ledger.is_playing(0.0)


def test_commit_all_on_done_does_not_commit_what_was_interrupted() -> None:
    """Invariant 94: only the played prefix of a cancelled answer stays."""
    ledger = ledger_of(ON_DONE)
    speak(ledger, done=False)
    ledger.acknowledge_item("item", 300, 0.0)
    ledger.interrupt("resp", 0.0)
    ledger.done("resp")
    assert positions(ledger) == (1000, 1000, 300, 300)


def test_auto_guesses_for_a_client_that_never_acknowledged() -> None:
    ledger = ledger_of(AUTO)
    speak(ledger, ms=8000, chars=800, now=10.0)
    assert [ledger.positions("resp", at).played_ms for at in (10.0, 11.0, 17.5, 18.0, 99.0)] == [
        0,
        1000,
        7500,
        8000,
        8000,
    ]
    assert ledger.heard("item", 12.0) == 200
    assert (ledger.is_playing(17.9), ledger.is_playing(18.0)) == (True, False)


def test_auto_plays_one_response_after_the_other() -> None:
    ledger = ledger_of(AUTO)
    speak(ledger, "first", response_id="r1", ms=2000, now=0.0)
    speak(ledger, "second", response_id="r2", ms=2000, now=0.5)
    assert ledger.playing(1.0) == ("r1", "r2")
    assert (ledger.heard("first", 1.0), ledger.heard("second", 1.0)) == (50, 0)
    assert (ledger.heard("first", 3.0), ledger.heard("second", 3.0)) == (100, 50)
    assert ledger.playing(4.0) == ()


def test_auto_does_not_wait_for_what_was_interrupted() -> None:
    ledger = ledger_of(AUTO)
    speak(ledger, "first", response_id="r1", ms=9000, now=0.0)
    speak(ledger, "second", response_id="r2", ms=9000, now=0.0)
    for response_id in ledger.playing(1.0):
        ledger.interrupt(response_id, 1.0)
    speak(ledger, "third", response_id="r3", now=2.0)
    assert ledger.positions("r3", 2.5).played_ms == 500


def test_auto_believes_a_client_from_its_first_acknowledgement_on() -> None:
    """Case E-04: a burst is acknowledged at 1,000 ms while the clock is further; the client's word counts."""
    ledger = ledger_of(AUTO)
    speak(ledger, ms=8000, chars=800)
    assert ledger.positions("resp", 3.0).played_ms == 3000
    assert acknowledged(ledger.acknowledge_response("resp", 1000, 3.0)) == (8000, 8000, 1000, 1000)
    assert ledger.positions("resp", 60.0).played_ms == 1000


def test_auto_keeps_its_guess_about_responses_that_the_first_acknowledgement_does_not_name() -> None:
    ledger = ledger_of(AUTO)
    speak(ledger, "old", response_id="r1", ms=1000, now=0.0)
    speak(ledger, "new", response_id="r2", ms=1000, now=5.0)
    ledger.acknowledge_item("new", 10, 5.5)
    assert (ledger.fully_heard("old", 5.5), ledger.positions("r2", 5.5).played_ms) == (True, 10)


def test_a_new_policy_keeps_what_was_heard() -> None:
    ledger = ledger_of(AUTO)
    speak(ledger)
    ledger.set_policy(ACK_ONLY, 0.4)
    assert ledger.positions("resp", 9.0).played_ms == 400
    ledger.set_policy(AUTO, 9.0)
    assert ledger.positions("resp", 9.0).played_ms == 1000


# --------------------------------------------------------------------------- interruption


def test_an_interruption_freezes_a_ceiling_that_no_late_acknowledgement_raises() -> None:
    """Wire contract, section 7: a late acknowledgement is answered with the positions in force."""
    ledger = ledger_of()
    speak(ledger, ms=8000, chars=800)
    ledger.acknowledge_item("item", 1000, 0.0)
    assert ledger.interrupt("resp", 0.0) == (cut("item", 1000, 100),)
    assert acknowledged(ledger.acknowledge_item("item", 3000, 0.0)) == (8000, 8000, 1000, 1000)
    assert acknowledged(ledger.acknowledge_response("resp", 3000, 0.0)) == (8000, 8000, 1000, 1000)
    assert ledger.heard("item", 99.0) == 100
    assert not ledger.is_playing(0.0)


def test_an_interruption_freezes_the_guess() -> None:
    ledger = ledger_of(AUTO)
    speak(ledger, ms=8000, chars=800)
    assert ledger.interrupt("resp", 2.5) == (cut("item", 2500, 250),)
    assert ledger.positions("resp", 99.0).played_ms == 2500


def test_interrupting_what_was_heard_whole_cuts_nothing() -> None:
    """Wire contract, section 6: nothing, if it was heard whole."""
    ledger = ledger_of()
    speak(ledger)
    ledger.acknowledge_item("item", 1000, 0.0)
    assert ledger.interrupt("resp", 0.0) == ()


def test_interrupting_twice_or_nothing_cuts_nothing() -> None:
    ledger = ledger_of()
    speak(ledger)
    assert ledger.interrupt("resp", 0.0)
    assert ledger.interrupt("resp", 0.0) == ()
    assert ledger.interrupt("unknown", 0.0) == ()


def test_of_a_response_each_item_that_was_not_heard_whole_is_cut() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    for item_id in ("first", "second", "third"):
        speak_item(ledger, item_id, "resp", 500, 50)
    ledger.acknowledge_response("resp", 700, 0.0)
    assert ledger.interrupt("resp", 0.0) == (cut("second", 200, 20), cut("third", 0, 0))


def test_an_item_that_was_still_generated_is_cut_even_if_all_that_was_handed_over_was_heard() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 0, 100, [Mark(samples=1000 * MS, chars=100)])
    ledger.append("item", 500 * MS, 0)
    ledger.sent("item", 500 * MS, 100, 0.0)
    ledger.acknowledge_item("item", 500, 0.0)
    assert ledger.interrupt("resp", 0.0) == (cut("item", 500, 50),)


def test_text_of_a_failed_response_that_was_never_spoken_was_not_heard() -> None:
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 0, 100, [Mark(samples=1000 * MS, chars=100)])
    ledger.append("item", 500 * MS, 0)
    ledger.sent("item", 500 * MS, 100, 0.0)
    ledger.done("resp")
    ledger.acknowledge_item("item", 500, 0.0)
    assert (ledger.heard("item", 0.0), ledger.is_playing(0.0)) == (50, False)
    assert ledger.interrupt("resp", 0.0) == (cut("item", 500, 50),)


@pytest.mark.parametrize("policy", list(PlaybackCommitPolicy))
def test_the_audio_of_a_client_that_never_acknowledges_is_not_held_back_for_ever(
    policy: PlaybackCommitPolicy,
) -> None:
    """Wire, section 7: pacing follows the server's clock until the client says where it is."""
    ledger = ledger_of(policy)
    speak(ledger, done=False)
    assert [ledger.ahead_ms("item", 1000 * MS, now) for now in (0.0, 0.4, 9.0)] == [1000, 600, 0]
    ledger.acknowledge_item("item", 300, 9.0)
    assert ledger.ahead_ms("item", 1000 * MS, 9.0) == 700


@pytest.mark.parametrize("policy", list(PlaybackCommitPolicy))
def test_a_client_that_stops_acknowledging_holds_its_audio_back_for_a_bounded_time(
    policy: PlaybackCommitPolicy,
) -> None:
    """Wire, section 7: then pacing follows the server's clock again; what counts as heard does not."""
    ledger = ledger_of(policy)
    speak(ledger, done=False)
    ledger.acknowledge_item("item", 300, 0.3)
    last = 0.3 + ACKNOWLEDGED_FOR_S
    assert [ledger.ahead_ms("item", 1000 * MS, now) for now in (last, last + 0.1)] == [700, 0]
    assert ledger.positions("resp", last + 0.1).played_ms == 300
    ledger.acknowledge_item("item", 400, last + 1)
    assert ledger.ahead_ms("item", 1000 * MS, last + 1) == 600


# --------------------------------------------------------------------------- truncation


def test_truncation_cuts_by_marks_and_no_acknowledgement_brings_text_back() -> None:
    """Invariant 116, case F-03: 20 words over 4,000 ms, cut at 1,000 ms."""
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 4000 * MS, 160, [Mark(200 * MS * word, 8 * word) for word in range(1, 21)])
    ledger.complete("item")
    ledger.sent("item", 4000 * MS, 160, 0.0)
    ledger.done("resp")
    assert ledger.truncate(Spoken("item", 4000 * MS, RATE, 160), 1000) == cut("item", 1000, 40)
    ledger.acknowledge_item("item", 4000, 0.0)
    assert (ledger.heard("item", 0.0), positions(ledger)) == (40, (4000, 4000, 1000, 1000))
    assert ledger.fully_heard("item", 0.0)


def test_truncation_lowers_what_counts_as_played() -> None:
    ledger = ledger_of()
    speak(ledger)
    ledger.acknowledge_item("item", 800, 0.0)
    ledger.truncate(Spoken("item", 1000 * MS, RATE, 100), 300)
    assert positions(ledger) == (1000, 1000, 300, 300)
    assert not ledger.is_playing(0.0)


@pytest.mark.parametrize(("item_ms", "rate"), [(3700, 24_000), (3700, 8_000)])
def test_truncation_beyond_the_audio_is_refused(item_ms: int, rate: int) -> None:
    """Case F-01, in its order; nothing is changed by what is refused."""
    ledger = ledger_of()
    spoken = Spoken("item", item_ms * rate // 1000, rate, 370)
    for wrong in (3760, 3701, -1):
        with pytest.raises(ProtocolError) as refused:
            ledger.truncate(spoken, wrong)
        assert refused.value.param == "audio_end_ms"
    assert ledger.truncate(spoken, 3700) == Cut("item", spoken.samples, 3700, 370, model_samples=3700 * MS)
    first = ledger.truncate(spoken, 1500)
    shorter = Spoken("item", first.samples, rate, first.chars)
    with pytest.raises(ProtocolError, match="1500 ms"):
        ledger.truncate(shorter, 2000)
    assert ledger.truncate(shorter, 1500) == first


def test_of_several_truncations_the_smallest_holds() -> None:
    ledger = ledger_of()
    speak(ledger)
    whole = Spoken("item", 1000 * MS, RATE, 100)
    for audio_end_ms in (600, 200, 400):
        ledger.truncate(whole, audio_end_ms)
    ledger.acknowledge_item("item", 1000, 0.0)
    assert ledger.heard("item", 0.0) == 20


def test_truncation_at_zero_before_the_first_frame() -> None:
    """Case F-02: text may have been handed over already; none of it was heard."""
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    ledger.add_part("resp", "item")
    ledger.append("item", 0, 50)
    ledger.sent("item", 0, 50, 0.0)
    assert ledger.interrupt("resp", 0.0) == (cut("item", 0, 0),)
    assert ledger.truncate(Spoken("item", 0, RATE, 50), 0) == cut("item", 0, 0)


def test_an_item_that_the_ledger_does_not_know_is_cut_in_proportion() -> None:
    ledger = ledger_of()
    assert ledger.truncate(Spoken("old", 1000 * MS, RATE, 100), 250) == cut("old", 250, 25)
    assert ledger.truncate(Spoken("old", 0, RATE, 100), 0) == cut("old", 0, 0)


# --------------------------------------------------------------------------- forgetting


def test_a_deleted_item_leaves_no_trace() -> None:
    """Invariant 120."""
    ledger = ledger_of()
    ledger.begin("resp", RATE, 0.0)
    for item_id in ("first", "second"):
        speak_item(ledger, item_id, "resp", 500, 50)
    ledger.truncate(Spoken("first", 500 * MS, RATE, 50), 100)
    ledger.forget("first")
    ledger.append("first", 10, 1)
    ledger.sent("first", 10**6, 99, 0.0)
    ledger.complete("first")
    assert (ledger.heard("first", 0.0), positions(ledger)) == (None, (500, 500, 0, 0))
    answer = ledger.acknowledge_response("resp", 700, 0.0)
    assert answer is not None
    assert (answer.item_id, answer.playback.played_ms) == ("second", 200)


def test_deleting_an_item_forgets_acknowledgements_that_came_too_early() -> None:
    ledger = ledger_of()
    ledger.acknowledge_item("item", 600, 0.0)
    ledger.forget("item")
    speak(ledger)
    assert positions(ledger) == (1000, 1000, 0, 0)


def test_ten_thousand_responses_leave_no_more_than_a_few() -> None:
    """Invariant 119."""
    ledger = ledger_of()
    for number in range(10_000):
        speak(ledger, f"item_{number}", response_id=f"resp_{number}")
        ledger.acknowledge_response(f"resp_{number}", 1000, 0.0)
    assert len(ledger) == MAX_RESPONSES
    assert ledger.fully_heard("item_0", 0.0)
    assert ledger.heard("item_0", 0.0) is None


def test_what_is_forgotten_unheard_is_told() -> None:
    """A client that never acknowledges must not have its old answers turn into heard ones."""
    ledger = ledger_of()
    speak(ledger)
    ledger.acknowledge_item("item", 400, 0.0)
    told = []
    for number in range(MAX_RESPONSES):
        told.append(ledger.begin(f"resp_{number}", RATE, 0.0))
        ledger.done(f"resp_{number}")
    assert told == [*[()] * (MAX_RESPONSES - 1), (cut("item", 400, 40),)]
    assert ledger.acknowledge_item("item", 1000, 0.0) is None


def test_a_response_that_runs_is_not_forgotten_however_many_follow() -> None:
    """Out-of-band responses run beside it."""
    ledger = ledger_of()
    speak(ledger, done=False)
    for number in range(2 * MAX_RESPONSES):
        ledger.begin(f"resp_{number}", RATE, 0.0)
    speak_item(ledger, "second", "resp", 500, 50)
    assert positions(ledger) == (1500, 1500, 0, 0)
    assert len(ledger) == 2 * MAX_RESPONSES + 1
    for number in range(2 * MAX_RESPONSES):
        ledger.done(f"resp_{number}")
    ledger.begin("newest", RATE, 0.0)
    assert len(ledger) == MAX_RESPONSES
