"""Other builds of mercast, each a folder for PYTHONPATH: an older one from the history, and one as the next may be.

`python tests/builds.py` records frames of the next one (tests/wire/corpus/newer).
"""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]

OLDER = "09a6cff0852eed1489820bc4ef5d6bb19c7225b9"
"""The last commit before brokers had security. It speaks version 1 of the wire."""

MORE = {
    "__init__.py": """
__version__ = "{name}"
""",
    "wire/frames.py": '''

_frame = frame


def frame(kind: int, body: bytes) -> bytes:
    """With a field that nobody knows yet, where there are fields."""
    if body[:1] == b"{{" and kind not in (Kind.PING, Kind.PONG, Kind.PUBLISH, Kind.RECEIPTS):
        body = b'{{"of_the_next":[1]' + (b"," if body != b"{{}}" else b"") + body[1:]
    return _frame(kind, body)
''',
    "wire/hello.py": '''

VERSIONS = {versions}
common_version.__defaults__ = (VERSIONS,)
_hello = hello


def hello(**said: Any) -> bytes:
    """Followed by a frame of a kind that nobody knows yet."""
    return _hello(**said) + frame(200, b"of the next")
''',
    "wire/events.py": '''

_encode_content, _encode_packet = encode_content, encode_packet


def encode_content(*what: Any, **more: Any) -> bytes:
    return _longer(_encode_content(*what, **more), _CONTENT.size)


def encode_packet(packet: Packet) -> bytes:
    """With a flag that nobody knows yet; what came from others is passed on as it is."""
    said = _encode_packet(packet)
    if packet.event.stamped:
        return said
    return _longer(said[:1] + bytes([said[1] | 0x80]) + said[2:], _STAMP.size)


def _longer(said: bytes, header: int) -> bytes:
    """With two more bytes in the header at its beginning."""
    return bytes([header + 2]) + said[1:header] + b"ne" + said[header:]
''',
    "wire/peers.py": '''

from mercast.wire.events import _longer  # noqa: E402

_to_plain, _as_it_is = to_plain, _forward_frame


def to_plain(value: Any) -> Any:
    """With a field that nobody knows yet, at every level."""
    return _with_more(_to_plain(value))


def _with_more(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_with_more(one) for one in plain]
    if isinstance(plain, dict):
        return {{name: _with_more(one) for name, one in plain.items()}} | {{"of_the_next": None}}
    return plain


def _forward_frame(*what: Any) -> bytes:
    """With a flag that nobody knows yet."""
    body = _as_it_is(*what)[HEADER.size :]
    return frame(Kind.FORWARD, _longer(body[:1] + bytes([body[1] | 0x80]) + body[2:], _FORWARD.size))
''',
}
"""What the next build has at the end of these files: it says all that version 1 foresees that a newer build may say."""


def older(folder):
    """None where the history is not known: not a clone, or one without its past."""
    done = subprocess.run(["git", "archive", OLDER, "services"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(folder, filter="data")
    _add(folder, {"__init__.py": MORE["__init__.py"]}, name="older")
    return folder / "services"


def following(folder, versions=(1, 2)):
    """A build of later than this one, which speaks these versions of the wire."""
    copytree(ROOT / "services", folder / "services", ignore=ignore_patterns("__pycache__"))
    _add(folder, MORE, name="next", versions=versions)
    return folder / "services"


def _add(folder, more, **what):
    for name, text in more.items():
        with (folder / "services/mercast" / name).open("a") as file:
            file.write(text.format(**what))


def environment(build=None):
    """For a process of a build; of this one, if none is given."""
    return os.environ | ({"PYTHONPATH": str(build)} if build else {})


RECORDER = """
import json, sys
sys.path.insert(0, "tests")
from textwrap import wrap
from wire.test_corpus import CORPUS, RECORDED, WRITERS, Kind, Framing

for file in RECORDED:
    companion = json.loads(file.with_suffix(".json").read_text())
    place = CORPUS / "newer" / file.name
    if not companion["canonical"] or place.exists() or companion["kind"] in ("PING", "PONG", "RECEIPTS"):
        continue
    said = WRITERS[Kind[companion["kind"]]](companion["says"])
    said = said[: 4 + int.from_bytes(said[:4], "big")]  # without the frame that follows a HELLO
    place.write_text("\\n".join([file.read_text().partition("\\n")[0] + ", and more", *wrap(said.hex(), 64), ""]))
"""


def record():
    """Only adds: what is there stays as it is."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RECORDER]
        subprocess.run(command, cwd=ROOT, env=environment(following(Path(folder))), check=True)


if __name__ == "__main__":
    record()
