"""Settings: defaults, order of sources, and every refusal names its key (wire contract, sections 11, 12)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ConfigurationError
from counterpoint.serving.settings import Settings, sections

ALL_KEYS = {
    "models": "aliases",
    "limits": (
        "max_sessions input_stall_ms max_frame_bytes max_pending_input_bytes max_pending_turns max_turn_s "
        "max_pending_output_bytes max_audio_lead_ms response_timeout_s max_response_s max_session_s "
        "cleanup_timeout_s max_history_audio_bytes"
    ),
    "lease": "idle_ttl_s disconnect_grace_s reaper_interval_s",
    "journal": "max_bytes max_events ttl_s total_max_bytes",
    "transport": (
        "handshake_timeout_s ping_interval_s ping_timeout_s send_timeout_s close_timeout_s tls_cert tls_key "
        "compression"
    ),
    "drain": "timeout_s",
    "admission": "queue",
    "access": "keys_file origins max_sessions_per_key connections_per_minute",
    "store": "url max_wait_ms max_lag_events",
    "cluster": "node_url lease_s heartbeat_s",
    "debug": "state_route",
}

#: Off is no sensible state of these: without it nothing works, or the work never stops (section 12).
POSITIVE = {
    "cluster.heartbeat_s",
    "journal.max_bytes",
    "journal.total_max_bytes",
    "lease.reaper_interval_s",
    "limits.max_frame_bytes",
    "limits.max_history_audio_bytes",
    "limits.max_pending_input_bytes",
    "limits.max_pending_output_bytes",
    "transport.ping_interval_s",
}

NUMBERS = sorted(
    f"{section}.{field.name}"
    for section, kind in sections().items()
    for field in msgspec.structs.fields(kind)
    if isinstance(field.default, int | float) and not isinstance(field.default, bool)
)


def load(*overrides: str) -> Settings:
    return Settings.load(overrides=overrides)


def refused(*overrides: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(*overrides)
    assert "\n" not in str(caught.value)
    return caught.value


def written(folder: Path, text: str) -> Path:
    file = folder / "counterpoint.toml"
    file.write_text(text)
    return file


def test_the_keys_are_exactly_those_of_the_contract() -> None:
    found = {
        section: {field.name for field in msgspec.structs.fields(kind)}
        for section, kind in sections().items()
    }
    assert found == {section: set(names.split()) for section, names in ALL_KEYS.items()}


def test_the_defaults_are_those_of_the_contract() -> None:
    settings = load()
    assert settings == Settings()
    assert settings.models.aliases == ("gpt-*realtime*",)
    assert (settings.limits.max_sessions, settings.limits.max_pending_turns) == (64, 4)
    assert settings.limits.max_frame_bytes == 15 * 1024 * 1024
    assert (settings.limits.input_stall_ms, settings.limits.max_turn_s) == (1000, 300)
    assert (settings.limits.response_timeout_s, settings.limits.max_response_s) == (60, 600)
    assert (settings.lease.idle_ttl_s, settings.lease.disconnect_grace_s) == (300, 30)
    assert (settings.journal.max_bytes, settings.journal.max_events) == (8_388_608, 65_536)
    assert (settings.journal.ttl_s, settings.journal.total_max_bytes) == (60, 1_073_741_824)
    assert (settings.transport.handshake_timeout_s, settings.transport.send_timeout_s) == (10, 10)
    assert (settings.transport.ping_interval_s, settings.transport.ping_timeout_s) == (20, 20)
    assert (settings.drain.timeout_s, settings.transport.close_timeout_s) == (30, 2)
    assert settings.limits.cleanup_timeout_s == 5
    assert settings.store.max_wait_ms == 200
    assert settings.model == {}


def test_the_command_line_beats_the_environment_beats_the_file(tmp_path: Path) -> None:
    file = written(
        tmp_path, "[limits]\nmax_sessions = 1\nmax_pending_turns = 1\nmax_turn_s = 1\n[model]\nvoice = 'a'\n"
    )
    env = {
        "COUNTERPOINT__LIMITS__MAX_SESSIONS": "2",
        "COUNTERPOINT__LIMITS__MAX_PENDING_TURNS": "2",
        "COUNTERPOINT__MODEL__SPEED": "1.5",
        "PATH": "/bin",
    }
    settings = Settings.load(file, env, ["limits.max_sessions=3"])
    assert settings.limits.max_sessions == 3
    assert settings.limits.max_pending_turns == 2
    assert settings.limits.max_turn_s == 1
    assert settings.model == {"voice": "a", "speed": 1.5}


def test_the_last_of_two_overrides_wins() -> None:
    assert load("admission.queue=1", "admission.queue=2").admission.queue == 2


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("model.words=3", 3),
        ("model.pace=burst", "burst"),
        ("model.hang=true", True),
        ('model.script={"audio_ms": 5}', {"audio_ms": 5}),
        ("model.script=[{}, {}]", [{}, {}]),
        ("model.url=http://localhost:1/v1?a=b", "http://localhost:1/v1?a=b"),
    ],
)
def test_values_for_the_plugin_are_passed_on(override: str, value: object) -> None:
    name = override.partition("=")[0].partition(".")[2]
    assert load(override).model == {name: value}


def test_tables_for_the_plugin_nest_and_are_overridden_by_leaf(tmp_path: Path) -> None:
    file = written(tmp_path, "[model.llm]\nurl = 'http://a'\nturns = 2\n")
    assert Settings.load(file, overrides=["model.llm.turns=3"]).model == {
        "llm": {"url": "http://a", "turns": 3}
    }
    assert refused("model.llm=1", "model.llm.turns=3").key == "model.llm.turns"


def test_text_stays_text_and_lists_have_two_spellings() -> None:
    assert load("store.url=123").store.url == "123"
    assert load("access.origins=https://a, https://b").access.origins == ("https://a", "https://b")
    assert load('access.origins=["https://a"]').access.origins == ("https://a",)
    assert load("access.origins=").access.origins == ()


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_booleans_are_true_and_false(text: str, value: bool) -> None:
    assert load(f"debug.state_route={text}").debug.state_route is value


@pytest.mark.parametrize("text", ["yes", "1", "0", "True", ""])
def test_nothing_else_is_a_boolean(text: str) -> None:
    assert refused(f"debug.state_route={text}").key == "debug.state_route"


def test_an_unknown_key_is_refused_from_every_source_with_the_nearest_known_one(tmp_path: Path) -> None:
    file = written(tmp_path, "[limits]\nmax_sesions = 1\n")
    for given_from in (
        {"file": file},
        {"env": {"COUNTERPOINT__LIMITS__MAX_SESIONS": "1"}},
        {"overrides": ["limits.max_sesions=1"]},
    ):
        with pytest.raises(ConfigurationError, match=r"did you mean limits\.max_sessions\?") as caught:
            Settings.load(**given_from)
        assert caught.value.key == "limits.max_sesions"


@pytest.mark.parametrize("override", ["quux.zzz=1", "limits=1", "model=scripted", "limits.max_sessions.x=1"])
def test_a_key_outside_of_the_table_is_refused(override: str) -> None:
    assert refused(override).key == override.partition("=")[0]


def test_an_override_without_a_value_is_refused() -> None:
    assert refused("limits.max_sessions").key == "limits.max_sessions"


@pytest.mark.parametrize("text", ["many", "-1", "true", "null", "1.5", "1e400", "NaN", '"1"', "[1]"])
def test_a_count_takes_whole_numbers_only(text: str) -> None:
    assert refused(f"limits.max_sessions={text}").key == "limits.max_sessions"


@pytest.mark.parametrize("key", NUMBERS)
def test_zero_turns_off_what_can_be_off(key: str) -> None:
    if key in POSITIVE:
        assert refused(f"{key}=0").key == key
    else:
        load(f"{key}=0")


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("text", ["-1", "inf", "nan", "Infinity", "1e300", "soon"])
def test_no_number_is_negative_or_endless(key: str, text: str) -> None:
    assert refused(f"{key}={text}").key == key


def test_endless_times_are_refused_from_a_file_too(tmp_path: Path) -> None:
    for text in ("inf", "nan"):
        with pytest.raises(ConfigurationError, match=r"^lease\.idle_ttl_s: "):
            Settings.load(written(tmp_path, f"[lease]\nidle_ttl_s = {text}\n"))


@given(ttl=st.integers(0, 100), grace=st.integers(0, 100))
def test_events_outlive_the_grace_or_do_not_age(ttl: int, grace: int) -> None:
    overrides = (f"journal.ttl_s={ttl}", f"lease.disconnect_grace_s={grace}")
    if 0 < ttl < grace:
        assert refused(*overrides).key == "journal.ttl_s"
    else:
        assert load(*overrides).journal.ttl_s == ttl


def test_tls_needs_both_files() -> None:
    assert refused("transport.tls_cert=a.pem").key == "transport.tls_key"
    assert refused("transport.tls_key=a.pem").key == "transport.tls_cert"
    assert load("transport.tls_cert=a", "transport.tls_key=b").transport.tls_cert == "a"


def test_a_node_renews_before_it_counts_as_dead() -> None:
    assert refused("cluster.lease_s=3", "cluster.heartbeat_s=3").key == "cluster.lease_s"
    assert load("cluster.lease_s=0", "cluster.heartbeat_s=3").cluster.lease_s == 0


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.toml: No such file"):
        Settings.load(tmp_path / "missing.toml")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        Settings.load(written(tmp_path, "[limits\n"))
    (tmp_path / "counterpoint.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        Settings.load(tmp_path / "counterpoint.toml")
