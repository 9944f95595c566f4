"""The file of keys: its form, its reload, and that no line of it is ever shown."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.serving.keys import Key, KeyFile


def line(key: str, *words: str) -> str:
    return " ".join((hashlib.sha256(key.encode()).hexdigest(), *words))


def write(file: Path, *lines: str) -> None:
    """Write, and make sure that it shows: two writes may be within one tick of the file system's clock."""
    later = file.stat().st_mtime + 1 if file.exists() else None
    file.write_text("\n".join(lines) + "\n")
    if later is not None:
        os.utime(file, (later, later))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    write(
        file,
        "# who may connect",
        "",
        line("sk-1", "shop"),
        line("sk-2", "help", "desk", "admin"),
        line("sk-3", "admin"),
        line("sk-4"),
    )
    return file


def test_a_line_is_a_hash_a_name_and_maybe_admin(file: Path) -> None:
    keys = KeyFile(file)
    assert keys.find("sk-1") == Key("shop")
    assert keys.find("sk-2") == Key("help desk", admin=True)
    assert keys.find("sk-3") == Key("admin"), "a name, and not a mark"
    assert keys.find("sk-4") == Key(hashlib.sha256(b"sk-4").hexdigest()[:12])
    assert keys.find("sk-5") is None
    assert keys.find("") is None


def test_what_is_no_text_is_no_key(file: Path) -> None:
    """As a header with bytes that are not UTF-8 arrives."""
    assert KeyFile(file).find(b"sk-\xff".decode("utf-8", "surrogateescape")) is None


def test_a_change_is_read_and_a_name_may_have_two_keys(file: Path) -> None:
    keys = KeyFile(file)
    write(file, line("sk-1", "shop"), line("sk-9", "shop"))
    keys.reload()
    assert keys.find("sk-9") == Key("shop")
    assert keys.find("sk-2") is None
    assert (keys.has("shop"), keys.has("help desk")) == (True, False)
    write(file, line("sk-9", "shop"))
    keys.reload()
    assert keys.has("shop"), "the key was replaced, its owner stays"


def test_what_cannot_be_read_leaves_the_keys_as_they_were(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = KeyFile(file)
    write(file, "sk-somebody-put-the-key-itself-here shop")
    keys.reload()
    assert keys.find("sk-1") == Key("shop")
    said = str([vars(record) for record in caplog.records])
    assert "sk-somebody" not in said
    assert "line 1" in said
    file.unlink()
    keys.reload()
    assert keys.find("sk-1") == Key("shop")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"not a hash\n", "line 1"),
        (b"abcd name\n", "line 1"),
        (b"\xff\xfe", "it is not text"),
        (None, "cannot read"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_wrong_setting(
    tmp_path: Path, text: bytes | None, reason: str
) -> None:
    file = tmp_path / "keys"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(ConfigurationError, match=reason) as error:
        KeyFile(file)
    assert error.value.key == "access.keys_file"
