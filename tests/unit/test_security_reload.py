"""Changes of files are seen, however they are made, and once."""

import os

import pytest

from mercast.security.files import replace_file
from mercast.security.reload import Watch


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "file"
    file.write_text("one")
    return file


def looks(watch, times=4):
    return [watch.changed() for _ in range(times)]


def test_nothing_happens(file):
    assert looks(Watch([file, None])) == [False] * 4


def test_a_change_is_told_once_and_when_it_rests(file):
    watch = Watch([file])
    file.write_text("three")
    assert watch.changed() is False
    file.write_text("fourteen")
    assert looks(watch) == [False, True, False, False]


def test_a_symlink_that_leads_elsewhere_to_the_same_content(file, tmp_path):
    other, link, new = tmp_path / "other", tmp_path / "link", tmp_path / "new"
    os.link(file, other)  # even the same inode
    link.symlink_to(file)
    watch = Watch([link])
    new.symlink_to(other)
    new.replace(link)
    assert looks(watch) == [False, True, False, False]


def test_a_folder_on_the_way_that_is_swapped(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "now").symlink_to("a")
    watch = Watch([tmp_path / "now" / "file"])
    (tmp_path / "next").symlink_to("b")
    (tmp_path / "next").replace(tmp_path / "now")
    assert True in looks(watch)


def test_a_file_that_goes_and_comes(file):
    watch = Watch([file])
    file.unlink()
    assert looks(watch) == [False, True, False, False]
    file.write_text("back")
    assert looks(watch) == [False, True, False, False]


def test_replaced_through_a_symlink(file, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file)
    replace_file(link, b"two", secret=True)
    assert (link.is_symlink(), file.read_text(), file.stat().st_mode & 0o777) == (True, "two", 0o600)
    assert {one.name for one in tmp_path.iterdir()} == {"file", "link"}


def test_what_is_put_right_while_it_is_read_is_told(tmp_path):
    file = tmp_path / "tokens.yaml"
    file.write_text("wrong")
    watch = Watch([file])
    watch.see([file])
    file.write_text("right, and longer")  # while the wrong one was being read
    watch.go_back_to([file])
    assert not watch.changed()  # it may not have come to rest
    assert watch.changed()
    assert not watch.changed()
