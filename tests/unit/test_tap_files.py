"""Taps in files: rotated, bounded, and no harm where there is no room."""

import asyncio

import pytest

from mercast.taps.files import FileShipper
from mercast.taps.settings import TapSettings, check_where
from mercast.taps.shipper import Parcel


def _ship(folder, values, files=3, file_bytes=100, buffer_bytes=10_000):
    async def ship():
        settings = TapSettings(f"file://{folder}", file_bytes=file_bytes, files=files, buffer_bytes=buffer_bytes)
        shipper = FileShipper(settings, 7)
        running = asyncio.create_task(shipper.run())
        for value in values:
            shipper.put(Parcel("taps", 0, None, value, 1))
            while shipper.bytes:
                await asyncio.sleep(0.001)
        running.cancel()
        return shipper

    return asyncio.run(ship())


def test_a_full_file_makes_room_for_the_next_and_the_oldest_goes(tmp_path):
    shipper = _ship(tmp_path / "new", [str(number).encode() * 30 for number in range(10)])  # three fill a file
    found = {file.name: file.read_text().split() for file in (tmp_path / "new").iterdir()}
    lines = [str(number) * 30 for number in range(10)]
    assert found == {"taps-7.jsonl": lines[9:], "taps-7.jsonl.1": lines[6:9], "taps-7.jsonl.2": lines[3:6]}
    assert (shipper.shipped, shipper.lost, shipper.bytes) == (10, 0, 0)


def test_one_file_begins_anew(tmp_path):
    _ship(tmp_path, [b"a" * 60, b"b" * 60], files=1)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"b" * 60 + b"\n"]


def test_a_disk_that_takes_nothing_harms_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    shipper = _ship(tmp_path / "file", [b"a", b"b"])  # which is no folder
    assert (shipper.shipped, shipper.lost, shipper.bytes, shipper.there) == (0, 2, 0, False)


def test_what_was_half_written_is_taken_back(tmp_path, monkeypatch):
    _ship(tmp_path, [b"whole"])
    file = tmp_path / "taps-7.jsonl"
    opened = type(file).open

    def full(self, mode="r", *rest):
        out = opened(self, mode, *rest)
        if mode == "ab":
            out.write(b"ha")
            out.close()
            raise OSError(28, "No space left on device")
        return out

    monkeypatch.setattr(type(file), "open", full)
    assert _ship(tmp_path, [b"half"]).lost == 1
    monkeypatch.undo()
    assert file.read_bytes() == b"whole\n"


def test_the_buffer_is_bounded():
    async def put():
        shipper = FileShipper(TapSettings("file:///nowhere", buffer_bytes=10), 7)
        for value in (b"12345678", b"123", b"", b"12"):
            shipper.put(Parcel("taps", 0, None, value, 5))
        return shipper.bytes, shipper.lost

    assert asyncio.run(put()) == (10, 10)


@pytest.mark.parametrize("where", ["kafka://a:1", "kafka://a:1,b:2", "kafka://a.b.:1", "file:///folder"])
def test_places(where):
    check_where(where)


@pytest.mark.parametrize(
    "where",
    [
        "kafka://a",
        "kafka://",
        "kafka://a:b",
        "kafka://a:0",
        "kafka://a:65536",
        "kafka://a:²",
        "kafka://a..b:1",
        "file://folder",
        "http://a:1",
        "a:1",
        "file:",
    ],
)
def test_no_places(where):
    with pytest.raises(ValueError, match="kafka://host:"):
        check_where(where)
