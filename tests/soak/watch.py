"""The brokers as their admin ports show them."""

import asyncio

import aiohttp

_ANSWER_WITHIN = aiohttp.ClientTimeout(total=2.0)


class Watch:
    def __init__(self, mesh, http):
        self._mesh, self._http = mesh, http

    async def is_ready(self, broker):
        return bool((await self._ask(broker, "readyz")).get("ready"))

    async def all_see(self, brokers, of, reachable):
        """Whether all these brokers see that another one is reachable, or is not."""
        views = await asyncio.gather(*(self._ask(broker, "overlay") for broker in brokers))
        return all(view and reachable == (of in _reachable(view)) for view in views)

    async def _ask(self, broker, path):
        """Empty, if there is no answer."""
        url = f"http://{self._mesh[broker].admin}/{path}"
        try:
            async with self._http.get(url, timeout=_ANSWER_WITHIN) as answer:
                return dict(await answer.json())
        except (aiohttp.ClientError, TimeoutError):
            return {}


def _reachable(view):
    return {one["id"] for one in view["overlay"]["brokers"] if one["reachable"]}
