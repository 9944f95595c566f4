"""Sessions over WebRTC: events on a data channel, audio on tracks (wire contract, section 13).

Owns: calls, from an offer to the end of the peer connection.
Does not own: sessions (``runtime``), what is said on the data channel (``protocol``), access (``serving``).
Here because: another transport is another package; ``peer`` and ``tracks`` alone know aiortc, an optional
extra.
"""
