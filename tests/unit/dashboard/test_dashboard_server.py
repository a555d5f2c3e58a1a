"""The dashboard's server, asked as browsers and others ask it."""

import asyncio
import gc
import re
import socket
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest
from aiohttp import ClientSession
from orjson import loads
from test_dashboard_view import ring

import mercast.dashboard
from mercast.broker.addresses import Address
from mercast.cli.dashboard import dashboard
from mercast.dashboard.server import MOST_PAGES, Server
from mercast.dashboard.view import State

STATIC = Path(mercast.dashboard.__file__).parent / "static"


@asynccontextmanager
async def serving(state=None, **how):
    server = Server(state or State(), **how)
    await server.beat()
    address = await server.start(Address("127.0.0.1", 0))
    async with ClientSession(f"http://{address}") as session:
        try:
            yield server, session
        finally:
            await server.stop()


async def get(session, path, **how):
    async with session.get(path, **how) as answer:
        return answer.status, await answer.text()


async def read_event(answer):
    name, data = (await answer.content.readline()).decode(), (await answer.content.readline()).decode()
    await answer.content.readline()
    return name.split()[1], loads(data.removeprefix("data: "))


def test_the_page_its_parts_and_plotly_are_served_and_nothing_can_be_changed():
    async def story():
        async with serving() as (_, session):
            status, text = await get(session, "/")
            assert (status, "<title>mercast</title>" in text) == (200, True)
            parts = re.findall(r'(?:src|href)="(/static/[^"]+)"', text)
            assert len(parts) > 3
            modules = [f"/static/{file.name}" for file in STATIC.glob("*.js")]
            assert {(await get(session, part))[0] for part in parts + modules} == {200}
            status, script = await get(session, "/plotly.js")
            assert (status, "Plotly" in script) == (200, True)
            async with session.post("/api/history") as answer:
                assert answer.status == 405
            async with session.get("/") as answer:
                assert "default-src 'self'" in answer.headers["Content-Security-Policy"]

    asyncio.run(story())


def test_no_address_of_another_machine_is_in_the_page():
    for file in STATIC.iterdir():
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", file.read_text()), file


def test_the_stream_begins_with_the_overlay_and_goes_on_with_pulses():
    async def story():
        async with serving(ring(3, monotonic())) as (server, session), session.get("/events") as answer:
            name, overlay = await read_event(answer)
            assert (name, len(overlay["brokers"])) == ("overlay", 3)
            assert (await read_event(answer))[0] == "pulse"
            await server.beat()
            assert (await read_event(answer))[0] == "pulse"

    asyncio.run(story())


def test_a_page_that_does_not_read_gets_the_newest_and_no_backlog():
    async def story():
        state = State()
        state.pulse = lambda *_: b"%d %s" % (server._beats, b"x" * 250_000)
        async with serving(state) as (server, session):
            slow = socket.socket()
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(slow, ("127.0.0.1", session._base_url.port))
            await loop.sock_sendall(slow, b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            while server._cost.pages < 1:
                await asyncio.sleep(0)
            for _ in range(200):
                await server.beat()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            written = server._cost.sent
            assert written < 25_000_000  # of fifty million: the system's own buffers, and one pulse
            newest, got = b"data: %d " % server._beats, b""
            while newest not in got:
                got = got[-20:] + await asyncio.wait_for(loop.sock_recv(slow, 1 << 20), 30)
            slow.close()

    asyncio.run(story())


def test_so_many_pages_and_no_more():
    async def story():
        async with serving() as (server, session):
            server._cost.pages = MOST_PAGES
            assert (await get(session, "/events"))[0] == 503

    asyncio.run(story())


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/history?minutes=0", 400, "minutes=0: expected 1 to 120\n"),
        ("/api/history?minutes=²", 400, "minutes=²: expected 1 to 120\n"),
        (f"/api/history?minutes={'9' * 5000}", 400, f"minutes={'9' * 5000}: expected 1 to 120\n"),
        ("/api/broker/9", 404, "no broker 9 is known\n"),
        (
            "/api/event?id=7",
            400,
            "an event id is three numbers: broker, incarnation, sequence, such as 3.1763380000000.17\n",
        ),
        ("/api/event?id=latest", 404, "no event has been published since the dashboard was started\n"),
    ],
)
def test_what_is_wrong_is_said(path, status, said):
    async def story():
        async with serving(ring(3, monotonic())) as (_, session):
            assert await get(session, path) == (status, said)

    asyncio.run(story())


def test_answers_about_brokers_history_and_events():
    async def story():
        async with serving(ring(3, monotonic())) as (_, session):
            about = loads((await get(session, "/api/broker/2"))[1])
            assert ([one["id"] for one in about["neighbours"]], about["tables"]) == ([1, 3], None)
            history = loads((await get(session, "/api/history?minutes=5&cluster=west"))[1])
            assert {"figures", "load"} == history.keys()
            found = loads((await get(session, "/api/event?id=1.2.3"))[1])
            assert (found["event"], found["rows"]) == ([1, 2, 3], [])

    asyncio.run(story())


def test_with_a_token_only_who_has_it_sees_anything():
    async def story():
        async with serving(token="secret") as (_, session):
            for path in ("/events", "/api/history", "/static/main.js", "/plotly.js"):
                assert (await get(session, path))[0] == 401
            status, form = await get(session, "/")
            assert (status, 'type="password"' in form) == (401, True)
            assert (await get(session, "/", headers={"Authorization": "Bearer secret"}))[0] == 200
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            for wrong in (b"token=wrong", b"token=\xff"):
                async with session.post("/token", data=wrong, headers=form) as answer:
                    assert answer.status == 401
            async with session.post("/token", data={"token": "secret"}, allow_redirects=False) as answer:
                cookie = answer.cookies["mercast-dashboard"]
                assert (answer.status, cookie["httponly"], cookie["samesite"]) == (303, True, "Strict")
            given = {"Cookie": f"mercast-dashboard={cookie.value}"}
            assert (await get(session, "/static/main.js", headers=given))[0] == 200

    asyncio.run(story())


def test_without_a_token_nobody_asks_by_a_name_from_elsewhere():
    async def story():
        async with serving() as (_, session):
            assert (await get(session, "/", headers={"Host": "evil.example"}))[0] == 403
            assert (await get(session, "/", headers={"Host": "localhost:1"}))[0] == 200

    asyncio.run(story())


def _themes():
    text = (STATIC / "style.css").read_text()
    blocks = re.findall(r"color-scheme: (\w+);(.*?)\}", text, re.DOTALL)
    return [(name, dict(re.findall(r"--([\w-]+): (#\w{6})", body))) for name, body in blocks]


def _light(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one, other):
    light, dark = sorted((_light(one), _light(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_can_be_told_apart_in_both_themes():
    themes = _themes()
    assert [name for name, _ in themes] == ["light", "dark", "dark"]
    assert themes[1][1] == themes[2][1]  # as the system has it, and as chosen
    for name, theme in themes:
        grounds = {
            "text": ("card", "ground", "warn-ground", "faint"),
            "soft": ("card", "ground"),
            "on-accent": ("accent",),
        }
        grounds |= dict.fromkeys(("accent", "good", "bad"), ("card",))
        for text, behind in grounds.items():
            for ground in behind:
                assert _contrast(theme[text], theme[ground]) >= 4.5, (name, text, ground)
        for sign in ("series-1", "series-2", "series-3", "series-4", "link-busy", "off"):
            assert _contrast(theme[sign], theme["card"]) >= 3, (name, sign)


def test_an_address_that_is_in_use_is_told_and_nothing_else(recwarn):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SystemExit, match=f"^mercast dashboard: {address}: .*address already in use"):
            dashboard(listen=address, kafka="127.0.0.1:1", admin="127.0.0.1:1")
    gc.collect()
    assert [str(one.message) for one in recwarn] == []
