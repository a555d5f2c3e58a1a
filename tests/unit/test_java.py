"""Java is found, or asked for in one sentence."""

import os

import pytest

from mercast.kafka import KafkaError, java


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with nothing on it; gives a function that puts a program there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("NO_INSTALL", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        java, "_candidates", lambda original=java._candidates: (j for j in original() if tmp_path in j.parents)
    )

    def put(name, script):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    return put


def _says(version):
    return f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""


@pytest.mark.parametrize(("version", "number"), [("17.0.15", 17), ("1.8.0_292", 8), ("21", 21), ("25-ea", 25)])
def test_versions(machine, version, number):
    assert java.version_of(machine("java", _says(version))) == number


def test_that_of_the_path_unless_it_is_too_old(machine, monkeypatch, tmp_path):
    machine("java", _says("11.0.2"))
    newer = machine("newer/bin/java", _says("21.0.1"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "newer"))
    assert java.find_java() == newer


def test_root_has_it_installed_after_a_line_that_says_so(machine, tmp_path):
    program = tmp_path / "java"
    known = "openjdk-21-jre-headless"  # the first package that is tried is none here
    java_21 = machine("java-21", _says("21"))
    copy = f'case "$*" in *{known}) /bin/cp {java_21} {program};; *install*) exit 1;; esac'
    machine("apt-get", copy)
    told = []
    assert java.find_java(told.append) == program
    assert told == ["installing Java by apt-get (NO_INSTALL=1 forbids it)"]


def test_no_install_forbids_it(machine, monkeypatch, tmp_path):
    machine("apt-get", f"touch {tmp_path}/ran")
    monkeypatch.setenv("NO_INSTALL", "1")
    with pytest.raises(KafkaError, match="install it by: apt-get install -y --no-install-recommends openjdk-17-jre"):
        java.find_java()
    assert not (tmp_path / "ran").exists()


def test_others_are_told_what_to_type(machine, monkeypatch):
    machine("dnf", "exit 0")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(KafkaError, match="install it by: sudo dnf install -y java-17-openjdk-headless"):
        java.find_java()
