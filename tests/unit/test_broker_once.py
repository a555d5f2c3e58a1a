"""What the log tells once: refusals, and file descriptors that run out."""

import asyncio
import errno
import os

import pytest
from structlog.testing import capture_logs

from mercast.broker import descriptors, once
from mercast.broker.once import Once


def test_it_is_told_again_after_a_while():
    time = [0.0]
    said = Once(lambda: time[0])
    assert [said.first("a", 1), said.first("a", 1), said.first("a", 2)] == [True, False, True]
    time[0] = 599.0
    assert not said.first("a", 1)
    time[0] = 601.0
    assert said.first("a", 1)
    assert not said.first("a", 1)


def test_strangers_words_are_not_all_remembered(monkeypatch):
    monkeypatch.setattr(once, "_MOST", 3)
    said = Once(lambda: 0.0)
    assert all(said.first(word) for word in "abcd")
    assert [said.first(word) for word in "dcba"] == [False, False, False, True]


@pytest.mark.parametrize("why", [errno.EMFILE, errno.ENFILE])
def test_file_descriptors_run_out_and_come_back(monkeypatch, why):
    """Now and then there is one: that is not the end of it."""
    looks = iter("oo..o.ooooooo.")
    real = os.open

    def opened(path, flags):
        if next(looks) == ".":
            raise OSError(why, os.strerror(why))
        return real(path, flags)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(descriptors, "_LOOK", 0)
    with capture_logs() as logs, pytest.raises(RuntimeError):  # no more looks
        asyncio.run(descriptors.watch())
    assert [line["event"].partition(":")[0] for line in logs] == [
        "no file descriptors left",
        "there are file descriptors again",
        "no file descriptors left",
    ]


def test_other_trouble_is_not_taken_for_it(monkeypatch):
    def opened(*_):
        raise next(errors)

    errors = iter([FileNotFoundError(errno.ENOENT, ""), KeyError()])
    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(descriptors, "_LOOK", 0)
    with capture_logs() as logs, pytest.raises(KeyError):
        asyncio.run(descriptors.watch())
    assert logs == []
