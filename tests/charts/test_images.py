"""Images: script and Containerfiles say the same, locks agree, and archives are what a container engine reads."""

import hashlib
import importlib.util
import json
import re
import tarfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
IMAGES = PROJECT / "images"

_spec = importlib.util.spec_from_file_location("build_images", IMAGES / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)


def _environment(containerfile):
    (last,) = re.findall(r"^ENV ((?:.*\\\n)*.*)$", containerfile.read_text(), re.MULTILINE)
    return dict(word.split("=", 1) for word in last.replace("\\\n", " ").split())


@pytest.mark.parametrize(
    ("containerfile", "environment"),
    [
        ("Containerfile", build._ENVIRONMENT),
        # JAVA_HOME is where Debian's own scripts would find it.
        ("Containerfile.spark", build._ENVIRONMENT | {k: v for k, v in build._WITH_JAVA.items() if k != "JAVA_HOME"}),
    ],
)
def test_both_ways_give_the_same_environment(containerfile, environment):
    of_the_base = ("PATH", "LANG")
    assert _environment(IMAGES / containerfile) == {k: v for k, v in environment.items() if k not in of_the_base}


@pytest.mark.parametrize("lock", ["mercast.lock", "spark.lock"])
def test_images_hold_what_was_tested(lock):
    tested, held = (
        set(re.findall(r"^([a-z0-9._-]+)==(\S+)", file.read_text(), re.MULTILINE))
        for file in (PROJECT / "requirements.lock", IMAGES / lock)
    )
    assert held <= tested
    assert "kubernetes" in dict(held)


def test_an_archive_is_an_image_layout(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "_OUT", tmp_path)

    def fill(root):
        (root / "opt").mkdir()
        (root / "opt/file").write_text("content")

    layer = build._layer("some", ["source"], fill)
    assert build._layer("some", ["source"], None) == layer  # which is not made twice
    archive = build._archive("some", "registry/some:1", [layer], {"KEY": "value"})
    with tarfile.open(archive) as tar:
        blobs = {name: tar.extractfile(name).read() for name in tar.getnames()}
    for name, blob in blobs.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"
    (described,) = json.loads(blobs["index.json"])["manifests"]
    assert described["annotations"]["io.containerd.image.name"] == "registry/some:1"
    manifest = json.loads(blobs[_blob(described)])
    configuration = json.loads(blobs[_blob(manifest["config"])])
    assert configuration["config"]["Env"] == ["KEY=value"]
    assert configuration["config"]["User"] == "10001:10001"
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{layer.digest}"]
    (blob,) = manifest["layers"]
    tmp_path.joinpath("layer.tar").write_bytes(blobs[_blob(blob)])
    with tarfile.open(tmp_path / "layer.tar") as tar:
        assert {(one.name, one.uid, one.mtime) for one in tar} == {("opt", 0, 0), ("opt/file", 0, 0)}


def _blob(described):
    return "blobs/sha256/" + described["digest"].removeprefix("sha256:")
