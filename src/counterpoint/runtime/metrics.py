"""What operators read: counters and gauges of one server.

Owns: the names and labels of every metric, in a registry of their own.
Does not own: serving them (``serving.routes``).
Here because: names that dashboards depend on belong in one file; two servers of one process share none.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """Every metric of a server, by attribute."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.sessions_opened = Counter("counterpoint_sessions_opened", "Sessions admitted", registry=registry)
        self.sessions_refused = Counter(
            "counterpoint_sessions_refused", "Sessions that found no slot", registry=registry
        )
        self.sessions_ended = Counter(
            "counterpoint_sessions_ended", "Sessions ended, by reason", ["reason"], registry=registry
        )
        self.connections_ended = Counter(
            "counterpoint_connections_ended",
            "Connections that left a session, by cause",
            ["cause"],
            registry=registry,
        )
        self.resumes = Counter("counterpoint_resumes", "Resumes, by outcome", ["outcome"], registry=registry)
        self.slots_used = Gauge("counterpoint_slots_used", "Slots taken", registry=registry)
        self.slots_closing = Gauge(
            "counterpoint_slots_closing",
            "Slots of sessions that are over and whose model side has not let go yet",
            registry=registry,
        )
        self.cleanups_failed = Counter(
            "counterpoint_cleanups_failed", "Attempts to clean up a model side that failed", registry=registry
        )
        self.client_secrets = Gauge(
            "counterpoint_client_secrets", "Client secrets that are remembered", registry=registry
        )
        tokens = Counter("counterpoint_tokens", "Tokens, by direction", ["direction"], registry=registry)
        self.tokens_in, self.tokens_out = tokens.labels("input"), tokens.labels("output")
        audio = Counter(
            "counterpoint_audio_seconds", "Seconds of audio, by direction", ["direction"], registry=registry
        )
        self.audio_in, self.audio_out = audio.labels("input"), audio.labels("output")
        self.loop_lag = Histogram(
            "counterpoint_loop_lag_seconds",
            "How late the event loop runs what is due",
            buckets=_LAG_BUCKETS,
            registry=registry,
        )

    def exposition(self) -> bytes:
        """The text format that Prometheus scrapes."""
        return generate_latest(self._registry)
