"""Who may see the page: whoever has the token; without one, whoever is on this machine. It can only be read.

A browser sends the token once, in a form, and then as a cookie that no script can read.
"""

from hmac import compare_digest

from aiohttp import web
from aiohttp.typedefs import Handler

from mercast.broker.addresses import parse_address
from mercast.security.tokens import hash_of

COOKIE = "mercast-dashboard"
_BEARER = "Bearer "

_HEADERS = {
    # plotly puts styles of its own into the page.
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

OPEN = ("/token", "/static/style.css", "/static/icon.svg")
"""Without a token: what is needed to give it."""


class Door:
    def __init__(self, token: str, ask: str) -> None:
        """`ask` is the page that asks for the token."""
        self._wanted = hash_of(token) if token else None
        self._ask = ask

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._wanted is None and not _is_local(request.host):
            # A page from elsewhere may have had its own name lead here.
            return web.Response(status=web.HTTPForbidden.status_code, text="without a token, ask at 127.0.0.1\n")
        if not self._allowed(request):
            status = web.HTTPUnauthorized.status_code
            if request.path == "/":
                return web.Response(status=status, text=self._ask, content_type="text/html")
            said = "a token is needed here, as in: Authorization: Bearer …\n"
            return web.Response(status=status, text=said, headers={"WWW-Authenticate": _BEARER.strip()})
        return await handler(request)

    def _allowed(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "").removeprefix(_BEARER) or request.cookies.get(COOKIE, "")
        return self._wanted is None or request.path in OPEN or compare_digest(hash_of(given), self._wanted)

    async def take(self, request: web.Request) -> web.StreamResponse:
        """The form."""
        try:
            given = str((await request.post()).get("token", "")).strip()
        except ValueError:  # whatever it is, it is no text
            given = ""
        answer = web.Response(status=web.HTTPSeeOther.status_code, headers={"Location": "/"})
        if self._wanted is not None and compare_digest(hash_of(given), self._wanted):
            answer.set_cookie(COOKIE, given, httponly=True, samesite="Strict", secure=request.secure)
        return answer


async def headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


def _is_local(host: str) -> bool:
    try:
        return parse_address(host, 80).is_loopback
    except ValueError:
        return False
