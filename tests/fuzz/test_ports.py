"""Damage on every port of real brokers, for an instant: the whole corpus, and some fixed seeds. `make fuzz` goes on."""

import asyncio
import signal

import pytest
from fuzz.conversations import (
    ADMIN,
    CLIENT,
    DEAF,
    DECODER,
    NOWHERE,
    PEER,
    Conversation,
    conversation,
    files,
    from_text,
    is_believed,
    is_tame,
    to_text,
)
from fuzz.decoders import decode
from fuzz.fuzzing import ROUND, Broken, Fuzzing, keep, narrowed, replay_all
from fuzz.mutations import MOST_BYTES, MUTATIONS, mutated, mutated_frame
from fuzz.seeds import CLIENT_HELLO, PEER_HELLO, seeds
from fuzz.steady import Steady
from fuzz.target import MIB, Target

from mercast.wire.frames import Kind, frame

SEED = "fixed"
ROUNDS = 1
FRAMES = 4_000


@pytest.mark.slow
def test_the_corpus_and_some_seeds_harm_nobody():
    async def all_of_it():
        async with Fuzzing() as fuzzing:
            await replay_all(fuzzing)
            for number in range(ROUNDS):
                await fuzzing.round(SEED, number)
            assert fuzzing.conversations >= len(files()) + ROUNDS * sum(ROUND.values())
            assert all(target.steady.published > 0 for target in fuzzing.targets.values())

    asyncio.run(all_of_it())


def test_only_the_protocols_own_errors_escape_the_decoders():
    assert [wrong for k in range(FRAMES) if (wrong := decode(mutated_frame(f"{SEED}.{k}")))] == []


def test_what_escapes_a_decoder_is_told(monkeypatch):
    monkeypatch.setattr("fuzz.decoders.decode_message", lambda *_: [][1])
    said = decode(conversation(DECODER, "", frame(Kind.MESSAGE, b"{}")))
    assert said == "a decoder of kind 49 raises IndexError: list index out of range"


# -- what is judged ----------------------------------------------------------------------------------------------------


def problems_after(harm):
    """What is found wrong with brokers that harm was done to."""

    async def judged():
        async with Target(False) as target:
            assert await target.problems() == []
            target.steady.go_on()
            await asyncio.to_thread(harm, target)
            return await target.problems()

    return asyncio.run(judged())


def kill(target):
    process = target.brokers[1].process
    process.kill()
    process.wait()


def log(target, line):
    with target.brokers[2].log.open("a") as file:
        file.write(line + "\n")


def test_a_broker_that_dies_is_noticed():
    [problem] = problems_after(kill)
    assert problem.startswith(f"broker 1 has ended with status {-signal.SIGKILL}")


def test_what_is_logged_is_noticed():
    ours = '{"message": "defect", "level": "error", "exception": "Traceback …/mercast/broker/broker.py: IndexError"}'
    library = '{"message": "Error", "logger": "aiohttp.server", "level": "error", "exception": "Traceback: no HTTP"}'
    assert problems_after(lambda target: log(target, f"{library}\n{ours}")) == [
        "broker 2 logs: defect\nTraceback …/mercast/broker/broker.py: IndexError"
    ]


@pytest.mark.parametrize("everywhere", [True, False])
def test_events_that_are_lost_doubled_or_out_of_order_are_noticed(everywhere, monkeypatch):
    monkeypatch.setattr("fuzz.steady.PATIENCE", 0.1)
    steady = Steady({1: None, 2: None}, everywhere)
    steady._published = {1: 3, 2: 3}
    steady._arrived = {(1, 1): [0, 2], (1, 2): [0, 1, 2, 2], (2, 1): [0], (2, 2): [0, 2, 1]}
    elsewhere = {
        True: ["events from broker 1 to 2 are out of order or doubled",
               "2 events from broker 2 to 1 are missing, the first is 1"],
        False: ["events from broker 1 to 2 are doubled"],
    }  # fmt: skip
    assert asyncio.run(steady.problems()) == [
        "1 events from broker 1 to 1 are missing, the first is 1",
        *elsewhere[everywhere],
        "events from broker 2 to 2 are out of order or doubled",
    ]


def test_memory_that_grows_is_noticed(monkeypatch):
    monkeypatch.setattr("fuzz.target.GROWTH", {False: 8 * MIB})

    def forget(target):
        target._at_first = {1: 0, 2: target._at_first[2]}

    [problem] = problems_after(forget)
    assert problem.startswith("broker 1 had 0 MiB of memory, and has ")


def test_the_culprit_is_found_and_kept_for_replay(tmp_path, monkeypatch):
    """Among several conversations one does it."""
    many = [mutated(f"{SEED}.{k}", CLIENT) for k in range(7)]

    async def again(some):
        return Broken(["it broke"], some) if many[4] in some else None

    monkeypatch.setattr("fuzz.fuzzing.again", again)
    fewest = asyncio.run(narrowed(Broken(["it broke"], many)))
    assert fewest.conversations == [many[4]]
    file = keep(fewest.conversations, tmp_path)
    assert file.parent.name == CLIENT
    assert f"seed-{SEED}.4" in file.name
    assert from_text(file.read_text()) == [many[4]]


def test_what_only_does_it_together_stays_together(monkeypatch):
    many = [mutated(f"{SEED}.{k}", CLIENT) for k in range(4)]

    async def again(some):
        return None

    monkeypatch.setattr("fuzz.fuzzing.again", again)
    assert asyncio.run(narrowed(Broken(["it broke"], many))).conversations == many


# -- inputs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", [CLIENT, PEER, ADMIN])
def test_a_seed_makes_the_same_input_again(port):
    some = [mutated(f"{SEED}.{k}", port) for k in range(500)]
    assert some == [mutated(f"{SEED}.{k}", port) for k in range(500)]
    assert len(set(some)) > 490
    done = {kind for one in some for kind in one.note.split(" by ")[0].split("+")}
    assert done == set(MUTATIONS)
    assert all(is_tame(one) for one in some)
    assert from_text(to_text(some)) == some
    assert max(sum(len(piece) * times for piece, times in one.pieces) for one in some) <= MOST_BYTES


def test_conversations_are_kept_as_text():
    one = Conversation(CLIENT, "a: b", ((b"\x00\x01", 3), (b"\xff", 1)), 0.5, DEAF)
    other = conversation(ADMIN, "plain", b"GET")
    text = "# client: a: b\n@ pause 0.5\n@ end deaf\n0001 *3\nff\n# admin: plain\n474554\n"
    assert to_text([one, other]) == text
    assert from_text(text) == [one, other]
    with pytest.raises(ValueError, match="conversations are with one of client, peer, admin, decoder"):
        from_text("# nobody: x\n00\n")


def test_the_corpus_has_something_for_every_port_and_is_small():
    assert {file.parent.name for file in files()} >= {CLIENT, PEER, ADMIN}
    assert all(file.stat().st_size < 64 * 1024 for file in files())
    assert all(is_tame(one) for port in seeds().values() for one in port)


def test_who_is_believed_and_who_is_tame():
    assert is_believed(conversation(PEER, "", PEER_HELLO))
    assert not is_believed(conversation(PEER, "", CLIENT_HELLO))
    assert not is_believed(conversation(PEER, "", PEER_HELLO[:-1]))
    assert not is_believed(conversation(CLIENT, "", PEER_HELLO))
    elsewhere = frame(Kind.HELLO, PEER_HELLO[5:].replace(NOWHERE.encode(), b"10.0.0.1:99"))
    assert not is_tame(conversation(PEER, "", elsewhere))
    assert not is_tame(conversation(PEER, "", PEER_HELLO, frame(Kind.MEMBERS, b'{"members": [[5, "a:1", "", 0]]}')))
    assert is_tame(conversation(PEER, "", PEER_HELLO, frame(Kind.MEMBERS, b'{"members": 5')))
