"""The page as it is found: whole, labelled, in order, on any screen, clear about what a browser refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .browser import Page
from .conftest import WILLING, Browse, Server
from .talk import RATE, begin, follow, is_state, played, texts

pytestmark = pytest.mark.browser

UNNAMED = """[...document.querySelectorAll("button, input, select, canvas, [role=region]")]
  .filter((element) =>
  !element.hidden && !element.textContent.trim() && !element.labels?.length && !element.ariaLabel &&
  !element.getAttribute("aria-labelledby")).map((element) => element.outerHTML)"""

FOREIGN = """performance.getEntriesByType("resource").map(({ name }) => new URL(name).host)
  .filter((host) => host !== location.host)"""

#: How far anything reaches beyond the screen, or a text beyond its button.
OVERFLOW = """Math.max(
  document.documentElement.scrollWidth - innerWidth,
  document.documentElement.scrollHeight - innerHeight,
  ...[...document.querySelectorAll("button, .field, .notice, .turn, input")]
    .filter((element) => element.offsetParent)
    .flatMap((element) => [
      Math.ceil(element.getBoundingClientRect().right) - innerWidth,
      element.matches("input") ? 0 : element.scrollWidth - element.clientWidth,
    ]),
)"""

CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = (colour) => {
    const [r, g, b] = [...channels(colour)].map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(document.documentElement);
  const contrast = (one, other) => {
    const of = (name) => light(style.getPropertyValue(`--${name}`));
    const [a, b] = [of(one), of(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  return [["ink", "paper"], ["ink", "card"], ["soft", "paper"], ["soft", "card"], ["soft", "voice-tint"],
    ["you", "card"], ["voice", "card"], ["alert", "alert-tint"], ["ink", "you-tint"], ["ink", "voice-tint"]]
    .filter(([one, other]) => contrast(one, other) < 4.5);
})()"""


async def focused(page: Page) -> str:
    name: str = await page.evaluate("document.activeElement.id")
    return name


async def test_the_page_is_whole_and_self_contained(server: Server, browse: Browse) -> None:
    page = await browse(*WILLING)
    await page.load(server.page)
    assert await page.evaluate("document.title") == "Counterpoint"
    assert await page.evaluate(UNNAMED) == []
    assert await page.evaluate(FOREIGN) == []
    assert page.errors == []


async def test_everything_is_reached_by_key_in_the_order_that_is_seen(server: Server, browse: Browse) -> None:
    page = await browse()
    await begin(page, server.page)
    await page.evaluate("document.getElementById('text').value = 'x'")
    await page.evaluate("document.getElementById('text').dispatchEvent(new Event('input'))")
    await page.evaluate("document.activeElement.blur()")
    order = []
    for _ in range(7):
        await page.press("Tab", 9)
        order.append(await focused(page))
        assert await page.evaluate(
            "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
            " || getComputedStyle(document.activeElement.parentElement).outlineStyle !== 'none'"
        ), f"the focus on {order[-1]} cannot be seen"
    assert order == ["cut", "scroll", "talk", "text", "send", "silence", "end"]


async def test_space_starts_and_typing_a_space_does_not(server: Server, browse: Browse) -> None:
    page = await browse()
    await page.load(server.page)
    await page.evaluate("document.getElementById('text').focus()")
    await page.press(" ", 32, " ")
    assert await page.evaluate("document.getElementById('text').value") == " "
    assert await page.evaluate("counterpoint.conversation") is None
    await page.evaluate("document.activeElement.blur()")
    await page.press(" ", 32, " ")
    await is_state(page, "open")


async def test_a_screen_reader_hears_what_is_complete(server: Server, browse: Browse) -> None:
    page = await browse()
    await begin(page, server.page, audio_ms=500, text="It is noon.")
    assert await page.evaluate("document.getElementById('spoken').ariaLive") == "polite"
    await page.write("What time is it?")
    assert await texts(page, "#spoken") == ["You: What time is it?"]
    await page.until("document.getElementById('spoken').textContent === 'Voice: It is noon.'")


@pytest.mark.parametrize(
    ("width", "height"), [(320, 640), (390, 844), (768, 1024), (1280, 800), (1920, 1080)]
)
async def test_it_fits_the_screen(server: Server, browse: Browse, width: int, height: int) -> None:
    page = await browse()
    await page.resize(width, height)
    await page.load(server.page)
    assert await page.evaluate(OVERFLOW) <= 0
    await page.write("Something that is long enough to be wrapped on a telephone, if not on a larger screen")
    await played(page, RATE // 2)
    assert await page.evaluate(OVERFLOW) <= 0
    await page.click("talk")
    await follow(page, audio_ms=500, text="word " * 300)
    await page.write("And now at length")
    await played(page, RATE // 2)
    await page.evaluate("counterpoint.failed({ code: 'unsupported', message: 'of some length' })")
    assert await page.evaluate(OVERFLOW) <= 0
    last = "document.querySelector('.turn:last-child').getBoundingClientRect().bottom"
    end = "document.getElementById('scroll').getBoundingClientRect().bottom"
    await page.until(f"{last} <= {end}")


async def test_the_field_for_a_key_fits_a_telephone(
    start: Callable[..., Server], browse: Browse, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text(f"{'0' * 64} nobody\n")
    server = start("scripted", f"access.keys_file={tmp_path / 'keys'}")
    page = await browse()
    await page.resize(320, 640)
    await page.load(server.page)
    await page.click("talk")
    await page.until("document.activeElement.id === 'key'")
    assert await page.evaluate(OVERFLOW) <= 0


@pytest.mark.parametrize("dark", [False, True])
async def test_it_can_be_read_in_any_light(server: Server, browse: Browse, dark: bool) -> None:
    page = await browse()
    await page.resize(1280, 800, dark=dark)
    await page.load(server.page)
    assert await page.evaluate(CONTRAST) == []


async def test_a_refused_microphone_is_explained_and_typing_goes_on(server: Server, browse: Browse) -> None:
    page = await browse("--deny-permission-prompts", "--autoplay-policy=no-user-gesture-required")
    await page.load(server.page)
    await page.click("talk")
    await page.until("!document.getElementById('notice').hidden")
    (notice,) = await texts(page, "#notice-text")
    assert notice.startswith("The microphone was refused.")
    await page.write("Hello")
    await played(page, RATE)
    assert await texts(page, "#notice-text") == [notice]


async def test_an_insecure_origin_is_explained_and_answers_are_written(
    server: Server, browse: Browse
) -> None:
    page = await browse("--host-resolver-rules=MAP counterpoint.test 127.0.0.1")
    await page.load(f"http://counterpoint.test:{server.port}/")
    (notice,) = await texts(page, "#notice-text")
    assert notice.startswith("Browsers allow voice on https://")
    await page.write("Hello")
    await page.until("document.querySelector('.turn.voice p')?.textContent.endsWith('word10')")
    assert page.of_type("response.output_audio.delta") == []
    assert await texts(page, ".ahead") == []
