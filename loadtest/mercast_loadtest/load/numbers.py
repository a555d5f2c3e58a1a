"""Numbers of users, from 0 on in all processes together: what a user asks for and publishes follows from its number."""

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

from gevent.event import AsyncResult
from locust.runners import MasterRunner, WorkerRunner

_NUMBER = "mercast-number"
"""A message: a worker asks, the master answers."""
_WITHIN = 30.0


class Numbers:
    """By kind of user."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def __call__(self, kind: str) -> int:
        self._given[kind] += 1
        return self._given[kind] - 1


class Asked:
    """The same in a worker: the master is asked."""

    def __init__(self, runner: WorkerRunner) -> None:
        self._runner, self._tickets = runner, count()
        self._waiting: dict[int, AsyncResult] = {}
        runner.register_message(_NUMBER, self._answered)

    def __call__(self, kind: str) -> int:
        ticket = next(self._tickets)
        answer = self._waiting[ticket] = AsyncResult()
        self._runner.send_message(_NUMBER, {"kind": kind, "ticket": ticket})
        return int(answer.get(timeout=_WITHIN))

    def _answered(self, msg: Any, **_: Any) -> None:
        self._waiting.pop(msg.data["ticket"]).set(msg.data["number"])


def answer_with(runner: MasterRunner, number: Callable[[str], int]) -> None:
    """Workers that ask."""

    def asked(msg: Any, **_: Any) -> None:
        data = {"ticket": msg.data["ticket"], "number": number(msg.data["kind"])}
        runner.send_message(_NUMBER, data, client_id=msg.node_id)

    runner.register_message(_NUMBER, asked)
