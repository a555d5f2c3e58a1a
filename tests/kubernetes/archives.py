"""Images for the nodes, as archives: of this working tree, of a commit before it, and the one that holds a pod."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from build import CannotBe
from cluster import tell
from node import PAUSE

from mercast import __version__

_PROJECT = Path(__file__).parents[2]


class Images(NamedTuple):
    """Names of images that nodes have."""

    mercast: str
    spark: str
    previous: str
    """Of the code before its last change; empty where there is none."""


_OUT = _PROJECT / "build"


def current() -> list[Path]:
    """mercast and mercast-spark, tagged with the version."""
    _build(_PROJECT)
    return [_OUT / f"images/{name}.tar" for name in ("mercast", "mercast-spark")]


def current_names() -> tuple[str, str]:
    return f"mercast:{__version__}", f"mercast-spark:{__version__}"


def previous() -> tuple[Path, str]:
    """The image mercast:previous, of the code before its last change, and which commit that is."""
    last = _git("log", "-1", "--format=%H", "--", "services", "loadtest", "streaming").strip()
    commit = _git("rev-parse", f"{last}^").strip()
    tree = _OUT / f"previous/{commit[:12]}"
    if not tree.exists():
        shutil.rmtree(tree.parent, ignore_errors=True)
        archive = subprocess.run(["git", "archive", commit], cwd=_PROJECT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(tree, filter="data")
        layers = tree / "build/images/layers"
        layers.mkdir(parents=True)
        for layer in (_OUT / "images/layers").glob("*.tar"):  # most of them are the same
            os.link(layer, layers / layer.name)
    _build(tree, "mercast", "--tag", "previous")
    return tree / "build/images/mercast.tar", commit


def _build(project: Path, *words: str) -> None:
    tell(f"images of {project.name if project != _PROJECT else 'this working tree'}")
    done = subprocess.run([sys.executable, project / "images/build.py", *words], cwd=project, check=False)
    if done.returncode:
        raise CannotBe("the images cannot be built here: name them by IMAGE and SPARK_IMAGE, with KUBECONFIG")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=_PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBe(f"the history is not known here: {done.stderr.strip()}")
    return done.stdout


def pause(program: Path) -> Path:
    build = _builder()

    def fill(root: Path) -> None:
        shutil.copy(program, root / "pause")

    layer = build._layer("pause", [str(program)], fill)
    made: Path = build._archive("pause", PAUSE, [layer], {}, ["/pause"])
    return made


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_images", _PROJECT / "images/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
