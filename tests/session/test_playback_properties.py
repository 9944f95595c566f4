"""What holds of the playback ledger whatever server and client do (invariants 111 and 112, CASE-INV-11)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from counterpoint.plugins.contract import Mark
from counterpoint.protocol.config import PlaybackCommitPolicy
from counterpoint.session.playback import PlaybackLedger

RATE = 24_000
MS = RATE // 1000
CHARS_OF_WORD, MS_OF_WORD = 6, 300


class Playback(RuleBasedStateMachine):
    """One response of three items, in words of equal length with exact marks, against what a client does."""

    @initialize(
        policy=st.sampled_from([PlaybackCommitPolicy.ACK_ONLY, PlaybackCommitPolicy.AUTO]),
        alignment=st.sampled_from(["marks", "none"]),
    )
    def start(self, policy: PlaybackCommitPolicy, alignment: str) -> None:
        self.now = 0.0
        self.acks = policy is PlaybackCommitPolicy.ACK_ONLY
        self.ledger = PlaybackLedger(RATE, alignment, policy)
        self.ledger.begin("resp", RATE, self.now)
        self.items = ["item_0", "item_1", "item_2"]
        self.words = dict.fromkeys(self.items, 0)
        self.sent = dict.fromkeys(self.items, 0)  # milliseconds
        self.claimed = dict.fromkeys(self.items, 0)
        self.seen = dict.fromkeys(self.items, 0)
        self.positions = (0, 0, 0, 0)
        self.stopped = False
        for item_id in self.items:
            self.ledger.add_part("resp", item_id)

    @rule(item=st.integers(0, 2), words=st.integers(1, 5))
    def generate(self, item: int, words: int) -> None:
        """A sentence: all its text and marks come first, then its audio."""
        item_id = self.items[item]
        marks = [Mark(MS_OF_WORD * MS * word, CHARS_OF_WORD * word) for word in range(1, words + 1)]
        self.ledger.append(item_id, 0, CHARS_OF_WORD * words, marks)
        self.ledger.append(item_id, MS_OF_WORD * MS * words, 0)
        self.words[item_id] += words

    @rule(part=st.floats(0.0, 1.0))
    def hand_over(self, part: float) -> None:
        """More of the first item of which there is more."""
        for item_id in self.items:
            left = self.words[item_id] * MS_OF_WORD - self.sent[item_id]
            if left:
                self.sent[item_id] += max(1, int(left * part))
                chars = self.words[item_id] * CHARS_OF_WORD
                self.ledger.sent(item_id, self.sent[item_id] * MS, chars, self.now)
                return

    @rule(item=st.integers(0, 2), played_ms=st.integers(-10, 5000))
    def acknowledge(self, item: int, played_ms: int) -> None:
        item_id = self.items[item]
        self._first_word(played_ms)
        answer = self.ledger.acknowledge_item(item_id, played_ms, self.now)
        assert answer is not None
        assert answer.playback.played_ms <= self.sent[item_id]
        if not self.stopped:
            self.claimed[item_id] = max(self.claimed[item_id], min(played_ms, self.sent[item_id]))

    def _first_word(self, played_ms: int) -> None:
        """The first acknowledgement replaces the guess: from here on only the client's word counts."""
        if not self.acks:
            self.acks = True
            if not self.stopped:
                self.positions = (*self.positions[:2], 0, 0)
                self.seen = dict.fromkeys(self.items, 0)

    @rule(seconds=st.floats(0.0, 1.5))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: not self.stopped)
    @rule()
    def interrupt(self) -> None:
        heard = {item_id: self.ledger.heard(item_id, self.now) for item_id in self.items}
        for cut in self.ledger.interrupt("resp", self.now):
            assert cut.chars == heard[cut.item_id]
        self.stopped = True
        assert heard == {item_id: self.ledger.heard(item_id, self.now) for item_id in self.items}

    @invariant()
    def positions_are_in_order_and_never_fall(self) -> None:
        told = self.ledger.positions("resp", self.now)
        now = (told.generated_ms, told.sent_ms, told.played_ms, told.committed_ms)
        assert list(now) == sorted(now, reverse=True)
        assert all(later >= before for before, later in zip(self.positions, now, strict=True))
        self.positions = now

    @invariant()
    def text_never_falls(self) -> None:
        for item_id in self.items:
            heard = self.ledger.heard(item_id, self.now)
            assert heard is not None
            assert heard >= self.seen[item_id]
            self.seen[item_id] = heard

    @invariant()
    def no_word_is_heard_before_its_end(self) -> None:
        """In acknowledgement mode; a word in the middle of being spoken is rounded away later."""
        if not self.acks:
            return
        for item_id in self.items:
            heard = self.ledger.heard(item_id, self.now)
            assert heard is not None
            if not self.stopped:
                assert heard * MS_OF_WORD <= self.claimed[item_id] * CHARS_OF_WORD


TestPlayback = Playback.TestCase
