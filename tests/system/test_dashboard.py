"""The dashboard in a real browser: what it shows is what brokers and the metrics topic say, and it recovers by itself.

`pytest -s` prints how long things took.
"""

import asyncio
import json
import re
import threading
from contextlib import contextmanager
from itertools import takewhile
from time import monotonic
from urllib.request import urlopen

import pytest
from browser import browsing
from live import PATIENCE, Mesh, end, popen
from pretended import Pretended

from mercast.content.event import EventId
from mercast.kafka import Kafka
from mercast.processes import free_addresses

pytestmark = pytest.mark.slow

_MS = PATIENCE * 1_000
NAMELESS = """() => {
  const named = (one) => one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.labels?.length;
  const all = document.querySelectorAll("button, input, select, [role=button], [role=img], [role=region]");
  return [...all].filter((one) => !named(one) && !one.textContent.trim()).map((one) => one.outerHTML);
}"""
"""What a screen reader could say nothing of."""

TRIANGLE = [(1, 2), (2, 3), (1, 3)]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("chromium")) as context:
        yield context


@pytest.fixture
def page(chromium):
    page = chromium.new_page()
    page.set_default_timeout(_MS)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == []


class Dashboard:
    """The command; may be killed and started again at its address."""

    def __init__(self, *flags):
        (self.address,) = free_addresses(1)
        self._flags = ("dashboard", "--listen", self.address, *flags)
        self.url = f"http://{self.address}/"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        end(self.process)
        self.process.stdout.close()

    def start(self):
        self.process = popen(*self._flags, stdout=-1, text=True)
        assert self.process.stdout.readline().startswith(f"dashboard at {self.url}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def wait_text(page, selector, text):
    """Until an element says that, spaces aside; a failure tells what it said."""
    try:
        page.wait_for_function(
            "([where, text]) => document.querySelector(where)?.innerText.replace(/\\s+/g, ' ').includes(text)",
            arg=[selector, text],
        )
    except Exception:
        raise AssertionError(f"{selector}: {page.inner_text(selector)!r} has no {text!r}") from None


def node(id):
    return f"#overlay .node[data-id='{id}']"


# -- from admin ports --------------------------------------------------------------------------------------------------


def test_without_kafka_the_overlay_is_live_a_killed_broker_dead_and_a_restarted_server_found_again(page):
    with Mesh(3, TRIANGLE) as mesh:
        admins = ",".join(broker.admin for broker in mesh.brokers.values())
        with Dashboard("--kafka", "", "--admin", admins) as dashboard:
            page.goto(dashboard.url)
            wait_text(page, "#tile-brokers", "3 of 3")
            wait_text(page, "#overlay-sum", "3 brokers, 3 links up")
            wait_text(page, "#missing", "mercast metrics")  # what is missing, and what starts it
            page.click(node(2))
            wait_text(page, "#broker-title", "Broker 2")
            wait_text(page, "#broker-body", "R-PRT")
            wait_text(page, "#broker-body", "Neighbours (2)")

            began = monotonic()
            mesh.kill(3)
            page.wait_for_selector(f"{node(3)}[data-state=dead]")
            print(f"a killed broker was shown as dead after {monotonic() - began:.1f} s, from admin ports")
            wait_text(page, "#tile-brokers", "1 dead")
            wait_text(page, "#spoken", "Dead: broker 3")
            mesh.restart(3)
            page.wait_for_selector(f"{node(3)}[data-state=up]")

            dashboard.kill()
            page.wait_for_selector("#live[data-state=lost]")
            dashboard.start()
            page.wait_for_selector("#live[data-state=live]")
            wait_text(page, "#tile-brokers", "3 of 3")


def test_it_begins_with_nothing_and_says_what_to_start(page):
    away = free_addresses(2)
    with Dashboard("--kafka", away[0], "--admin", away[1]) as dashboard:
        page.goto(dashboard.url)
        wait_text(page, "#missing", "mercast local")
        wait_text(page, "#missing", f"No admin port answers at {away[1]} and no Kafka at {away[0]}")
        wait_text(page, "#nobody", "No broker is known yet")


# -- from Kafka --------------------------------------------------------------------------------------------------------


class Ticking:
    """Pretended brokers that tick, in a thread of their own; `alive` are those that do."""

    def __init__(self, kafka, prefix, links, windows):
        self._how, self._windows = (kafka, prefix, links), windows
        self.alive = {end for link in links for end in link}
        self.event = EventId(1, 1_000, 77)
        self._ready, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    async def _run(self):
        async with Pretended(*self._how) as brokers:
            await brokers.say_links()
            self.written = await brokers.windows(self._windows)
            self._ready.set()
            while not self._over.is_set():
                await brokers.tick(sorted(self.alive), receipts=[(2, 1, 40)], dropped={"no route": 3})
                await brokers.publish(self.event, (1, 2, 3))
                await asyncio.to_thread(self._over.wait, 1.0)


@contextmanager
def pretended(kafka, prefix, links=TRIANGLE, windows=30):
    with (
        Ticking(kafka, prefix, links, windows) as brokers,
        Dashboard("--kafka", kafka, "--prefix", prefix, "--admin", "") as dashboard,
    ):
        yield brokers, dashboard


def test_what_is_shown_is_what_the_topics_say(kafka, page):
    with pretended(kafka, "shown") as (brokers, dashboard):
        page.goto(dashboard.url)
        wait_text(page, "#tile-brokers", "3 of 3")
        last = brokers.written[-1]
        wait_text(page, "#tile-latency", f"{last['latency_p50_us']:.0f} µs p50")
        wait_text(page, "#tile-latency", f"{last['latency_p95_us'] / 1000:.2f} ms p95")
        wait_text(page, "#tile-latency", f"{last['latency_p99_us'] / 1000:.1f} ms p99")
        wait_text(page, "#tile-accuracy", f"{last['accuracy']:.2%}".replace("%", " %"))
        wait_text(page, "#tile-completeness", f"{last['completeness']:.2%}".replace("%", " %"))
        wait_text(page, "#tile-doubled", str(last["doubled_receipts"] + last["doubled_deliveries"]))
        wait_text(page, "#tile-published", "300")
        wait_text(page, "#tile-dropped", "no route")

        page.locator("#plot-shares").scroll_into_view_if_needed()
        for plot, line, name, scale in (
            ("latency", 0, "latency_p50_us", 1e-3), ("latency", 2, "latency_p99_us", 1e-3),
            ("shares", 0, "accuracy", 1), ("shares", 1, "completeness", 1),
        ):  # fmt: skip
            page.wait_for_function(
                "([id, many]) => document.getElementById(id).data?.[0].y.length === many",
                arg=[f"plot-{plot}", len(brokers.written)],
            )
            drawn = page.evaluate(f"[...document.getElementById('plot-{plot}').data[{line}].y]")
            assert drawn == pytest.approx([row[name] * scale for row in brokers.written])
        page.click("#windows summary")
        wait_text(page, "#windows tbody tr:first-child", f"{last['all_published']:,}")


def test_paths_of_events_links_and_the_dead_from_taps(kafka, page):
    with pretended(kafka, "paths") as (brokers, dashboard):
        page.goto(dashboard.url)
        wait_text(page, "#tile-brokers", "3 of 3")
        page.wait_for_function("() => document.querySelector('#overlay .rate')?.textContent !== ''")
        page.click("#event-latest")
        wait_text(page, "#event-body", "delivered to reader")
        said = re.sub(r"\s+", " ", page.inner_text("#event-body"))
        way = [
            "1 published, 1 other broker",
            "2 from broker 1, 1 hop, passes by",
            "3 from broker 2, 2 hops",
            "3 delivered to",
        ]
        assert [step in said for step in way] == [True] * 4
        assert page.locator("#overlay .link[data-path]").count() == 2
        page.fill("#event-id", "9.9.9")
        page.press("#event-id", "Enter")
        wait_text(page, "#event-body", "No row of event 9.9.9")

        began = monotonic()
        brokers.alive.remove(3)
        page.wait_for_selector(f"{node(3)}[data-state=dead]")
        print(f"a silent broker was shown as dead after {monotonic() - began:.1f} s, from taps")
        assert page.locator("#overlay .link[data-state=dead]").count() == 2
        assert page.locator("#brokers tr[data-state=dead]").inner_text().startswith("3")


def test_a_kafka_that_goes_and_comes_back_makes_nobody_dead():
    with (
        Kafka() as kafka,
        Mesh(2, [(1, 2)], options=["--taps", f"kafka://{kafka.address}"]),
        Dashboard("--kafka", kafka.address, "--admin", "") as dashboard,
        urlopen(f"{dashboard.url}events") as said,
    ):
        pulses = (json.loads(line[6:])["brokers"] for line in said if line.startswith(b'data: {"at"'))
        states = ({one[0] for one in brokers.values()} for brokers in pulses if len(brokers) == 2)
        next(one for one in states if one == {"up"})
        kafka.kill()
        seen = list(takewhile(lambda one: one != {"unknown"}, states))
        assert not any("dead" in one for one in seen)
        kafka.start()
        next(one for one in states if one == {"up"})


def test_by_keyboard_at_phone_width_and_in_both_themes(kafka, page):
    with pretended(kafka, "reached") as (_, dashboard):
        page.set_viewport_size({"width": 390, "height": 844})
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        page.goto(dashboard.url)
        wait_text(page, "#tile-brokers", "3 of 3")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for wanted in ("light", "dark", "auto"):
            page.click("#theme")
            wait_text(page, "#theme", wanted)
            shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (shown == dark) == (wanted != "light")

        first = page.locator("#overlay .node[tabindex='0']")
        assert first.count() == 1  # one stop for the tab key; arrows go from broker to broker
        first.focus()
        before = page.evaluate("document.activeElement.dataset.id")
        for arrow in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
            page.keyboard.press(arrow)
        page.keyboard.press("Enter")
        wait_text(page, "#broker-title", "Broker ")
        page.wait_for_function("() => document.activeElement.id === 'broker-title'")
        assert before in ("1", "2", "3")

        nameless = page.evaluate(NAMELESS)
        assert nameless == []
        for landmark in ("header", "main", "footer"):
            assert page.locator(landmark).count() == 1
        assert page.locator("h1").count() == 1
