"""The cascade session with written-down stages: what starts when, what is dropped, what is never said."""

from __future__ import annotations

import asyncio

import pytest
from tests.models.cascade.fakes import Fakes, commit, fakes, loud, sound_of, speak, spoken
from tests.models.support import SESSION, Outlet, assistant, now, request, step, user

from counterpoint.models.cascade import prompt
from counterpoint.models.cascade.session import CascadeSession
from counterpoint.models.cascade.stages import Message
from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    Fence,
    Scope,
    TextDelta,
    TurnEnd,
    TurnStatus,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.protocol.config import SessionConfig
from counterpoint.testing.virtual_time import run


def test_an_answer_that_nobody_prepared_is_begun_when_it_is_asked_for() -> None:
    async def main() -> None:
        stages = fakes()
        session, outlet = await stages.session()
        await speak(session)
        await commit(session)
        await session.respond(spoken())
        await outlet.ended(1)
        assert outlet.text() == "Well, that is good. So it is."
        assert outlet.pcm() == sound_of("Well, that is good.") + sound_of("So it is.")
        await session.close()

    run(main())


def test_sentences_come_in_packets_with_text_and_mark_on_the_first() -> None:
    async def main() -> None:
        session, outlet = await fakes().session()
        await session.respond(request(1, user("u", "hi")))
        await outlet.ended(1)
        deltas = outlet.of(AudioDelta)
        assert all(0 < len(delta.pcm) <= 4800 for delta in deltas)
        first, second = [delta for delta in deltas if delta.text]
        assert first is deltas[0]
        assert (first.text, first.marks[0].chars) == ("Well, that is good.", 19)
        assert first.marks[0].samples == len(sound_of("Well, that is good.")) // 2
        assert (second.text, second.marks[0].chars) == (" So it is.", 10)
        assert second.marks[0].samples == len(sound_of("So it is.")) // 2
        await session.close()

    run(main())


def test_a_written_answer_is_not_spoken() -> None:
    async def main() -> None:
        stages = fakes()
        session, outlet = await stages.session()
        await session.respond(request(1, user("u", "hi"), modalities=("text",)))
        await outlet.ended(1)
        assert [event.text for event in outlet.of(TextDelta)] == ["Well, that is good.", " So it is."]
        assert outlet.of(AudioDelta) == []
        assert stages.synthesizer.spoken == []
        await session.close()

    run(main())


def test_a_sentence_without_a_sound_is_still_in_the_transcript() -> None:
    async def main() -> None:
        session, outlet = await fakes("hi", "This is mute. This is not.").session()
        await session.respond(request(1, user("u", "hi")))
        await outlet.ended(1)
        assert outlet.events(1)[0] == TextDelta("This is mute.")
        assert outlet.text() == "This is mute. This is not."
        assert outlet.pcm() == sound_of("This is not.")
        await session.close()

    run(main())


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("way", ["cancel", "abort"])
def test_a_cancel_at_any_moment_stops_everything_and_says_nothing_more(prepared: bool, way: str) -> None:
    """Recognition, prompt, writing, speaking, sending: each await in turn (invariants 90, 98; case D-05)."""

    async def main(after_ms: int) -> None:
        stages = fakes("hello", " ".join(f"One, two, three, {n}. Four five six." for n in range(5)), "Good.")
        session, outlet = await stages.session()
        await speak(session)
        if prepared:
            await session.prepare(spoken())
            await asyncio.sleep(0.1)
        await commit(session)
        await session.respond(spoken())
        await asyncio.sleep(after_ms / 1000)
        if way == "cancel":
            await session.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
        else:
            await session.abort(Fence(SESSION, 9, 1))
        said = len(outlet.events(1))
        await asyncio.sleep(0.001)
        assert stages.model.calls.running == stages.synthesizer.calls.running == 0
        await session.respond(spoken(2, input=1, history=(user("u1", input=1),), epoch=1))
        await outlet.ended(2)
        assert len(outlet.events(1)) == said
        await session.close()
        assert stages.running == 0

    for after_ms in range(0, 400, 3):
        run(main(after_ms))


def test_a_close_at_any_moment_leaves_nothing() -> None:
    """Invariant 145."""

    async def main(after_ms: int) -> None:
        stages = fakes()
        session, outlet = await stages.session()
        await speak(session)
        await session.prepare(spoken())
        await asyncio.sleep(after_ms / 1000)
        if after_ms % 2:
            await commit(session, transcribe=True)
            await session.respond(spoken())
            await asyncio.sleep(after_ms / 3000)
        await session.close()
        said = len(outlet.said)
        assert stages.running == 0
        assert len(asyncio.all_tasks()) == 1
        await session.close()
        await asyncio.sleep(5)
        assert len(outlet.said) == said
        assert stages.model.released == [SESSION] * 2
        assert stages.open_sessions == set()

    for after_ms in range(0, 400, 3):
        run(main(after_ms))


def test_cancel_spares_out_of_band_answers_and_transcripts() -> None:
    async def main() -> None:
        session, outlet = await fakes(["hello"], "In band.", "Out of band.").session()
        await speak(session)
        await commit(session, transcribe=True)
        await session.respond(spoken(1))
        await session.respond(request(2, user("x", "summarise"), out_of_band=True))
        await session.cancel(Fence(SESSION, 0, 2), Fence(SESSION, 1, 2))
        await outlet.ended(2)
        await asyncio.sleep(1)
        assert outlet.of(AudioDelta, 1) == []
        assert [event.text for event in outlet.of(UserTranscript)] == ["hello"]
        await session.close()

    run(main())


@pytest.mark.logs_traceback
@pytest.mark.parametrize(
    ("words", "answer"),
    [("fails", "Fine."), ("hello", "This fails here."), ("hello", "Good. This is unspeakable, is it not.")],
    ids=["recognition", "language model", "synthesis"],
)
def test_a_stage_that_fails_fails_this_answer_and_no_other(words: str, answer: str) -> None:
    """Cases C-12 and I-12."""

    async def main() -> None:
        stages = fakes([words, "and now"], answer, "All is well.")
        session, outlet = await stages.session()
        await speak(session, 1)
        await commit(session, 1)
        await session.respond(spoken(1))
        await asyncio.sleep(2)
        assert outlet.events(1)[-1] == Failure("model_failed", Scope.TURN)
        assert len(outlet.of(Failure)) == 1
        stages.model.answers = ["All is well."]
        await speak(session, 2)
        await commit(session, 2)
        await session.respond(spoken(2, user("u1", input=1), assistant("a1", "Good.")))
        await outlet.ended(2)
        assert outlet.text(2) == "All is well."
        await session.close()

    run(main())


@pytest.mark.logs_traceback
def test_transcripts_by_input_whatever_becomes_of_the_others() -> None:
    """One final transcript each, or its failure (case J-03)."""

    async def main() -> None:
        session, outlet = await fakes(["one", "fails", "three"]).session()
        for utterance in (1, 2, 3):
            await speak(session, utterance, 200)
            await commit(session, utterance, transcribe=True)
        await asyncio.sleep(1)
        told = {event.input: event.text for event in outlet.of(UserTranscript)}
        assert told == {1: "one", 3: "three"}
        assert [event.input for event in outlet.of(UserTranscriptFailed)] == [2]
        await session.close()

    run(main())


def test_the_words_that_an_answer_needed_are_told_once() -> None:
    """The history can then say what was said, though no client asked for a transcript."""

    async def main() -> None:
        stages = fakes("hello")
        session, outlet = await stages.session()
        await speak(session)
        await commit(session)
        await asyncio.sleep(1)
        assert outlet.said == []
        await session.respond(spoken())
        await outlet.ended(1)
        await session.respond(spoken(2, input=1, history=(user("u1", input=1),)))
        await outlet.ended(2)
        assert [event.text for event in outlet.of(UserTranscript)] == ["hello"]
        assert stages.transcriber.calls.started == 1
        await session.close()

    run(main())


def test_a_typed_turn_needs_no_recognition() -> None:
    async def main() -> None:
        stages = fakes()
        session, outlet = await stages.session("be kind")
        await session.respond(request(1, user("u", "how are you?"), instructions="be kind"))
        await outlet.ended(1)
        system = Message("system", f"{prompt.MANNER} be kind")
        assert stages.model.prompts == [[system, Message("user", "how are you?")]]
        assert stages.transcriber.calls.started == 0
        await session.close()

    run(main())


def test_earlier_words_are_its_own_where_the_history_does_not_say_them() -> None:
    async def main() -> None:
        stages = fakes(["first words", "second words"])
        session, outlet = await stages.session()
        for utterance in (1, 2):
            await speak(session, utterance, 200)
            await commit(session, utterance)
        history = (user("u1", input=1), assistant("a1", "Aha."))
        await session.respond(spoken(2, *history))
        await outlet.ended(2)
        said = [(message.role, message.text) for message in stages.model.prompts[0][1:]]
        assert said == [("user", "first words"), ("assistant", "Aha."), ("user", "second words")]
        await session.close()

    run(main())


def test_audio_that_the_client_put_into_the_history_is_understood_too() -> None:
    async def main() -> None:
        stages = fakes("spoken elsewhere")
        session, outlet = await stages.session()
        item = user("u1", audio=bytes(48_000))
        for turn in (1, 2):
            await session.respond(request(turn, item))
            await outlet.ended(turn)
        assert stages.model.prompts[0][-1] == Message("user", "spoken elsewhere")
        assert len(stages.transcriber.begun[0].fed) == 32_000
        assert stages.transcriber.calls.started == 1
        await session.close()

    run(main())


def test_what_nobody_understood_is_answered_without_the_language_model() -> None:
    async def main() -> None:
        stages = fakes("")
        session, outlet = await stages.session()
        await speak(session)
        await commit(session)
        await session.respond(spoken())
        await outlet.ended(1)
        assert outlet.text() == prompt.SORRY
        assert stages.model.prompts == []
        await session.close()

    run(main())


def test_an_answer_waits_for_room_and_runs_no_further_ahead_than_a_sentence() -> None:
    """Back-pressure reaches the voice: one sentence is sent, one is ready, one is being made (case K-01)."""

    async def main() -> None:
        stages = fakes("hi", " ".join(f"This is sentence {n}." for n in range(50)))
        session, outlet = await stages.session()
        outlet.room.clear()
        await session.respond(request(1, user("u", "hi")))
        await asyncio.sleep(60)
        assert outlet.said == []
        assert len(stages.synthesizer.spoken) == 3
        outlet.room.set()
        await outlet.ended(1)
        assert len(stages.synthesizer.spoken) == 50
        await session.close()

    run(main())


def test_the_next_sentence_is_spoken_while_this_one_is_sent() -> None:
    async def main() -> None:
        stages = fakes("hi", "This is one. This is two.")
        session, outlet = await stages.session()
        outlet.room.clear()
        await session.respond(request(1, user("u", "hi")))
        await asyncio.sleep(1)
        outlet.room.set()
        unblocked_at = now()
        await outlet.ended(1)
        assert now() == unblocked_at
        await session.close()

    run(main())


def test_sessions_share_stages_and_nothing_else() -> None:
    async def main() -> None:
        stages = fakes(["from a", "from b"], "Alpha. Alpha.", "Beta. Beta.")
        (one, heard_by_one), (two, heard_by_two) = await stages.session(), await stages.session("", "sess_b")
        await asyncio.gather(speak(one), speak(two))
        for session in (one, two):
            await commit(session)
            await session.respond(spoken())
        await one.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
        await heard_by_two.ended(1)
        assert heard_by_one.of(AudioDelta) == []
        assert heard_by_two.text() in ("Alpha. Alpha.", "Beta. Beta.")
        assert {writing.session for writing in stages.model.writings} <= {SESSION, "sess_b"}
        assert stages.open_sessions == {SESSION, "sess_b"}
        await one.close()
        await two.close()
        assert sorted(stages.model.released) == ["sess_b", SESSION]

    run(main())


def test_the_beginning_of_the_next_prompt_is_read_while_idle() -> None:
    """At the start, after an answer that was sent whole, and when instructions change."""

    async def main() -> None:
        stages = fakes("hi", "Hello to you.")
        session, outlet = await stages.session("be kind")
        await asyncio.sleep(1)
        await session.respond(request(1, user("u1", "hi"), instructions="be kind"))
        await outlet.ended(1)
        await asyncio.sleep(1)
        await session.update(SessionConfig(instructions="be kind"))
        await session.update(SessionConfig(instructions="be funny"))
        await asyncio.sleep(1)
        kind, funny = (Message("system", f"{prompt.MANNER} be {how}") for how in ("kind", "funny"))
        turn = [Message("user", "hi"), Message("assistant", "Hello to you.")]
        assert stages.model.read == [[kind], [kind, *turn], [funny, *turn]]
        await session.close()

    run(main())


def test_reading_ahead_makes_way_for_an_answer() -> None:
    async def main() -> None:
        stages = fakes()
        session, _ = await stages.session()
        await asyncio.sleep(0.01)
        assert stages.model.calls.running == 1
        await session.prepare(request(1, user("u", "hi")))
        await asyncio.sleep(0.01)
        assert stages.model.calls.running == 1
        assert len(stages.model.prompts) == 1
        await session.close()

    run(main())


def test_an_answer_that_is_cut_short_says_so() -> None:
    async def main() -> None:
        session, outlet = await fakes("hi", "one two three four five").session()
        await session.respond(request(1, user("u", "hi"), max_output_tokens=3))
        end = await outlet.ended(1)
        assert end.status is TurnStatus.MAX_OUTPUT_TOKENS
        assert end.usage is not None
        assert end.usage.output_tokens == 3
        assert outlet.text() == "one two three"
        await session.close()

    run(main())


def test_only_the_newest_utterances_are_kept() -> None:
    """Memory does not grow with a session (case C-15)."""

    async def main() -> None:
        stages = fakes()
        session, _ = await stages.session()
        for utterance in range(1, 101):
            await session.push(step(utterance, loud(100), final=True))
        assert [begun.cancelled for begun in stages.transcriber.begun] == [True] * 92 + [False] * 8
        await session.close()

    run(main())


def test_an_utterance_whose_words_are_awaited_is_kept() -> None:
    async def main() -> None:
        stages = fakes([f"number {n}" for n in range(20)])
        stages.transcriber.delay = 10
        session, outlet = await stages.session()
        for utterance in range(20):
            await session.push(step(utterance, loud(100), final=True, transcribe=True))
            await asyncio.sleep(0)
        await asyncio.sleep(20)
        assert {event.input: event.text for event in outlet.of(UserTranscript)} == {
            n: f"number {n}" for n in range(20)
        }
        await session.push(step(20, loud(100)))
        assert [begun.cancelled for begun in stages.transcriber.begun] == [True] * 13 + [False] * 8
        await session.close()

    run(main())


async def in_the_middle_of_an_answer(stages: Fakes) -> tuple[CascadeSession, Outlet]:
    session, outlet = await stages.session()
    await session.respond(request(1, user("u", "hi")))
    await outlet.until(lambda: bool(outlet.of(AudioDelta)))
    return session, outlet


def test_truncate_changes_nothing_here() -> None:
    async def main() -> None:
        session, outlet = await in_the_middle_of_an_answer(fakes())
        await session.truncate(Fence(SESSION, 0, 1), 3, 100)
        assert isinstance(await outlet.ended(1), TurnEnd)
        await session.close()

    run(main())
