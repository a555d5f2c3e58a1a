"""The reliable channel, the exchange and the window of seen events, over a network that loses, doubles and reorders."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercast.content.event import EventId
from mercast.limits import DEFAULTS
from mercast.overlay.channel import Channel, Patience
from mercast.overlay.exchange import NOBODY, Exchange, Request
from mercast.overlay.said import ITEM_BYTES
from mercast.overlay.seen import Seen, SeenWindow
from mercast.protocol.messages import Complete, Control, Put


class Ears:
    """Keeps what it hears; may answer an item with one of its own, as strategies do."""

    def __init__(self):
        self.tables = {}
        self.completions = []
        self.exchange = None
        self.answers = False

    def heard(self, peer, key, value, cause):
        assert key not in self.tables.setdefault(peer, {})
        self.tables[peer][key] = value
        if self.answers and key[0] != "answer":
            self.exchange.tell(peer, ("answer", *key), value, cause)

    def repeated(self, peer, key, value, _cause):
        assert self.tables[peer][key] == value

    def completed(self, peer, incarnation, _cause):
        self.completions.append((incarnation, set(self.tables.get(peer, ()))))

    def unheard(self, peer, key, value, cause):
        assert self.tables[peer].pop(key) == value
        if self.answers and key[0] != "answer" and peer in self.exchange.told:
            self.exchange.untell(peer, ("answer", *key), cause)


class Pair:
    """Two exchanges and the messages between them."""

    def __init__(self, seed=0, answers=False):
        self.rng = random.Random(seed)
        self.now = 0.0
        self.incarnation = {1: 1, 2: 1}
        self.ears, self.exchanges, self.flying = {}, {}, []
        for who in (1, 2):
            self.start(who, answers)
        for who in (1, 2):
            self.exchanges[who].meet(3 - who)

    def start(self, who, answers=False):
        self.ears[who] = Ears()
        self.ears[who].answers = answers and who == 2
        self.exchanges[who] = Exchange(who, self.incarnation[who], self.ears[who], Patience(resend_after=1.0))
        self.ears[who].exchange = self.exchanges[who]

    def restart(self, who):
        self.incarnation[who] += 1
        self.start(who)
        self.exchanges[who].meet(3 - who)
        self.exchanges[3 - who].meet(who)

    def run(self, steps, loss=0.0, doubling=0.0, reorder=False):
        for _ in range(steps):
            self.now += 0.3
            for exchange in self.exchanges.values():
                for message in exchange.messages(self.now):
                    copies = 2 if self.rng.random() < doubling else 1
                    self.flying += [message] * copies if self.rng.random() >= loss else []
            if reorder:
                self.rng.shuffle(self.flying)
            flying, self.flying = self.flying, []
            for message in flying:
                self.exchanges[message.target].receive(message, self.now)

    def agree(self):
        return all(self.exchanges[a].told[3 - a] == self.ears[3 - a].tables.get(a, {}) for a in (1, 2))


@pytest.mark.parametrize("seed", range(30))
def test_both_sides_agree_whatever_the_network_does(seed):
    pair = Pair(seed, answers=seed % 2 == 1)
    for number in range(60):
        who = pair.rng.choice((1, 2))
        key = ("key", pair.rng.randrange(8))
        cause = Request("client", number)
        if pair.rng.random() < 0.6:
            pair.exchanges[who].tell(3 - who, key, pair.rng.randrange(3), cause)
        else:
            pair.exchanges[who].untell(3 - who, key, cause)
        pair.run(pair.rng.randrange(3), loss=0.4, doubling=0.3, reorder=True)
    pair.run(40)
    assert pair.agree()
    pair.run(250)
    assert pair.exchanges[1].differences == pair.exchanges[2].differences == 0
    digests = pair.exchanges[1].messages(pair.now + 100)
    assert [(message.items, message.digest is None) for message in digests] == [((), False)]


def test_many_items_arrive_in_order_and_once():
    pair = Pair()
    for number in range(1_000):
        pair.exchanges[1].tell(2, ("key", number), number, Request("client", 1))
    pair.run(30)
    assert list(pair.ears[2].tables[1].values()) == list(range(1_000))


def test_a_request_is_settled_when_its_consequences_are():
    """Side 2 answers each item with one of its own: the request waits for that too."""
    pair = Pair(answers=True)
    pair.run(5)
    request = Request("client", 1)
    pair.exchanges[1].open(request)
    pair.exchanges[1].tell(2, ("key", 1), "value", request)
    pair.exchanges[1].close_if_settled(request)
    for _ in range(2):
        pair.run(1)
        assert not pair.exchanges[1].settled
        assert pair.exchanges[1].missing(request) == (2,)
    pair.run(3)
    assert pair.exchanges[1].settled == [request]
    assert pair.ears[1].tables[2] == {("answer", "key", 1): "value"}


def test_nobody_waits_for_a_peer_that_is_lost():
    pair = Pair()
    request = Request("client", 1)
    pair.exchanges[1].open(request)
    pair.exchanges[1].tell(2, ("key", 1), "value", request)
    pair.exchanges[1].close_if_settled(request)
    pair.exchanges[1].lose(2)
    assert pair.exchanges[1].settled == [request]


def test_nobody_waits_for_what_is_told_while_a_peer_is_lost():
    pair = Pair()
    pair.exchanges[1].lose(2)
    request = Request("client", 1)
    pair.exchanges[1].open(request)
    pair.exchanges[1].tell(2, ("key", 1), "value", request)
    pair.exchanges[1].close_if_settled(request)
    assert pair.exchanges[1].settled == [request]
    pair.run(10)
    assert pair.ears[2].tables == {}
    pair.exchanges[1].regain(2)
    pair.run(10)
    assert pair.agree()


@pytest.mark.parametrize("damage", [lambda said: said.clear(), lambda said: said.update({("key", 9): "never told"})])
def test_a_difference_is_found_by_digest_and_mended(damage):
    pair = Pair()
    for number in range(3):
        pair.exchanges[1].tell(2, ("key", number), "value", Request("client", 1))
    pair.run(10)
    damage(pair.exchanges[2].said[1])
    pair.ears[2].tables[1] = dict(pair.exchanges[2].said[1])
    pair.run(250)
    assert pair.exchanges[2].differences == 1
    assert pair.agree()
    assert pair.exchanges[2].said[1] == pair.exchanges[1].told[2]


def channels():
    one, other = Channel(1, 2, Patience(resend_after=1.0)), Channel(2, 1, Patience(resend_after=1.0))
    one.start((1, 1), ())
    other.start((1, 1), ())
    return one, other


def test_what_was_lost_is_sent_again_though_there_is_always_news():
    one, other = channels()
    one.put(Put(("key", 0), 0))
    assert one.message(0.0, int).items == (Put(("key", 0), 0),)  # and is lost
    for number in range(1, 20):
        one.put(Put(("key", number), number))
        now = 0.5 * number
        if (message := one.message(now, int)) is not None:
            other.receive(message)
        if (answer := other.message(now, int)) is not None:
            one.receive(answer)
    assert not one.unsettled


def test_after_a_loss_answers_pull_all_the_rest():
    one, other = channels()
    for number in range(1_000):
        one.put(Put(("key", number), number))
    one.message(0.0, int)  # lost
    applied, message = [], one.message(1.0, int)
    while message is not None:
        applied += other.receive(message).items
        one.receive(other.message(1.0, int))
        message = one.message(1.0, int)
    assert [number for number, _ in applied] == list(range(1, 1_001))


def test_one_message_never_carries_more_than_fits_nor_a_digest_before_its_time():
    one, other = channels()
    sizes = []
    for number in range(1_000):
        one.put(Put(("key", number), number))
    while one.unsettled:
        message = one.message(0.0, int)
        assert message.digest is None
        sizes.append(len(message.items))
        other.receive(message)
        one.receive(other.message(0.0, int))
    assert sizes == [256, 256, 256, 232]


def test_a_peer_that_has_forgotten_even_one_item_is_found_out():
    one, other = channels()
    one.put(Put(("key", 0), 0))
    other.receive(one.message(0.0, int))
    answer = other.message(0.0, int)
    assert not one.is_forgotten_by(answer)
    one.receive(answer)
    assert not one.is_forgotten_by(answer)
    for sign in (answer._replace(applied=0), answer._replace(heard=(0, 9))):
        assert one.is_forgotten_by(sign)
    other.forget()
    assert one.is_forgotten_by(other.message(0.0, int))


def test_a_lost_answer_is_asked_for():
    one, other = channels()
    one.put(Put(("key", 0), 0))
    other.receive(one.message(0.0, int))
    other.await_consequences(1)
    one.receive(other.message(0.0, int))
    other.receive(one.message(0.0, int))
    other.settle((1, 1), 1)
    other.message(0.5, int)  # says that it is settled, and is lost
    assert list(one.unsettled) == [1]
    other.receive(one.message(1.0, int))
    one.receive(other.message(1.0, int))
    assert not one.unsettled


def test_what_another_caused_to_be_told_is_waited_for():
    pair = Pair()
    pair.run(5)
    first, second = Request("client", 1), Request("client", 2)
    for request in (first, second):
        pair.exchanges[1].open(request)
        pair.exchanges[1].tell(2, ("key", 1), "value", request)
        pair.exchanges[1].close_if_settled(request)
    assert pair.exchanges[1].settled == []
    pair.run(5)
    assert pair.exchanges[1].settled == [first, second]


def test_a_restarted_peer_is_told_everything_again_and_its_old_words_go():
    pair = Pair()
    pair.exchanges[1].tell(2, ("key", 1), "one", Request("client", 1))
    pair.exchanges[2].tell(1, ("key", 2), "two", Request("client", 1))
    pair.run(10)
    pair.restart(2)
    pair.run(10)
    assert pair.ears[2].tables[1] == {("key", 1): "one"}
    assert pair.ears[1].tables[2] == {}


def test_what_a_restarted_peer_had_not_answered_is_settled_when_it_has():
    pair = Pair()
    request = Request("client", 1)
    ask(pair.exchanges[1], request, 2)
    pair.restart(2)
    assert pair.exchanges[1].missing(request) == (2,)
    pair.run(10)
    assert pair.exchanges[1].settled == [request]


def test_one_side_may_forget_the_other():
    pair = Pair()
    pair.exchanges[1].tell(2, ("key", 1), "one", Request("client", 1))
    pair.exchanges[2].tell(1, ("key", 2), "two", Request("client", 1))
    pair.run(10)
    pair.exchanges[1].part(2)
    assert pair.ears[1].tables[2] == {}
    pair.exchanges[1].meet(2)
    pair.exchanges[1].tell(2, ("key", 3), "three", Request("client", 2))
    pair.run(20)
    assert pair.ears[1].tables[2] == {("key", 2): "two"}
    assert pair.ears[2].tables[1] == {("key", 3): "three"}


# -- one side with two peers that never answer -----------------------------------------------------------------------

FIRST, SECOND = Request("client", 1), Request("client", 2)


@pytest.fixture
def between():
    exchange = Exchange(1, 1, Ears(), Patience())
    exchange.meet(2)
    exchange.meet(3)
    return exchange


def ask(exchange, request, *peers, key=("key", 1)):
    exchange.open(request)
    for peer in peers:
        exchange.tell(peer, key, "value", request)
    exchange.close_if_settled(request)
    exchange.validate()


def test_a_request_waits_for_all_who_were_told_and_can_be_reached(between):
    ask(between, FIRST, 2, 3)
    assert between.missing(FIRST) == (2, 3)
    between.lose(2)
    assert (between.missing(FIRST), between.settled) == ((3,), [])
    between.lose(3)
    assert (between.missing(FIRST), between.settled) == ((), [FIRST])
    between.validate()


@pytest.mark.parametrize(("lost", "left"), [(2, 3), (3, 2)])
def test_of_two_that_are_told_only_the_one_in_reach_is_waited_for(between, lost, left):
    between.lose(lost)
    ask(between, FIRST, 2, 3)
    ask(between, SECOND, 2, 3, key=("key", 2))
    assert between.missing(FIRST) == between.missing(SECOND) == (left,)


def test_nothing_is_to_be_done_for_who_is_out_of_reach(between):
    assert [message.target for message in between.messages(0.0)] == [2, 3]
    assert between.next_deadline() == 1.0
    between.lose(2)
    between.lose(3)
    assert between.next_deadline() == float("inf")
    assert between.messages(1.0) == []
    between.regain(3)
    assert [message.target for message in between.messages(1.0)] == [3]


def test_who_gives_up_leaves_the_others_waiting(between):
    for request in (FIRST, SECOND):
        ask(between, request, 2)
    between.give_up(FIRST)
    between.validate()
    assert between.missing(SECOND) == (2,)
    between.lose(2)
    assert between.settled == [SECOND]


def test_a_peer_that_is_told_anew_is_waited_for_as_before_and_so_is_the_other(between):
    ask(between, FIRST, 2)
    ask(between, SECOND, 3)
    between.meet(2)
    between.validate()
    assert (between.missing(FIRST), between.missing(SECOND)) == ((2,), (3,))
    between.lose(3)
    assert between.settled == [SECOND]
    between.lose(2)
    assert between.settled == [SECOND, FIRST]


# -- the window of seen events -----------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 60), max_size=8) | st.sets(st.integers(0, 60)).map(sorted)))
def test_within_the_window_an_event_is_new_once(batches):
    """However many come at once, in order or not, with gaps or without."""
    window, seen = SeenWindow(size=20), set()
    for sequences in batches:
        expected = []
        for sequence in sequences:
            stale = seen and sequence <= max(seen) - 20
            expected.append(Seen.STALE if stale else Seen.REPEAT if sequence in seen else Seen.NEW)
            seen.add(sequence)
        assert window.see_all([EventId(1, 1, sequence) for sequence in sequences]) == expected


def test_what_is_older_than_the_window_is_stale():
    window = SeenWindow(size=10)
    assert window.see(EventId(1, 2, 100)) is Seen.NEW
    assert window.see(EventId(1, 2, 91)) is Seen.NEW
    assert window.see(EventId(1, 2, 90)) is Seen.STALE


def test_each_life_of_a_broker_has_a_window_of_its_own():
    """Whatever order they come in: a clock that was set back makes a later life look like an earlier one."""
    window = SeenWindow(size=10)
    for life in (2, 3, 1):
        assert window.see(EventId(1, life, 100)) is Seen.NEW
    assert [window.see(EventId(1, life, 100)) for life in (1, 2, 3)] == [Seen.REPEAT] * 3
    assert len(window) == 3


def test_of_too_many_sources_the_one_not_heard_of_for_the_longest_time_is_forgotten():
    window = SeenWindow(sources=2)
    for source in (1, 2, 1, 3):
        window.see(EventId(source, 1, 7))
    assert len(window) == 2
    assert [window.see(EventId(source, 1, 7)) for source in (1, 3)] == [Seen.REPEAT] * 2


def test_what_has_come_by_one_way_is_new_by_another_and_all_ways_together_are_bounded():
    window, events = SeenWindow(sources=20), [EventId(1, 1, sequence) for sequence in range(3)]
    for way in ((1,), (2, 1)):
        assert window.see_all(events, way) == [Seen.NEW] * 3
        assert window.see_all(events, way) == [Seen.REPEAT] * 3
    for number in range(100):
        window.see_all(events, (number, 7))
    assert len(window) == 20


def test_a_peer_has_said_everything_when_nothing_is_left_of_what_it_said_before():
    """What it says first after a restart comes late: that looks as if it lived on, and had forgotten us."""
    pair = Pair()
    pair.exchanges[1].tell(2, ("old",), 1, NOBODY)
    pair.exchanges[2].tell(1, ("other",), 1, NOBODY)
    pair.run(10)
    pair.restart(1)
    one, two = pair.exchanges.values()
    (late,) = one.messages(pair.now)
    for message in two.messages(pair.now):
        one.receive(message, pair.now)
    for message in (*one.messages(pair.now), late):
        two.receive(message, pair.now)
    assert (2, set()) not in pair.ears[2].completions  # by now, and a request that concerns it is to wait
    request = Request("client", 1)
    two.open(request)
    two.wait_for_all(1, request)
    two.close_if_settled(request)
    pair.run(10)
    assert two.settled == [request]
    assert pair.ears[2].tables[1] == {}
    assert [said for incarnation, said in pair.ears[2].completions if incarnation == 2] == [set()]


# -- what one peer may have us keep ----------------------------------------------------------------------------------


def bounded(most_items):
    pair = Pair()
    pair.exchanges[2] = Exchange(2, 1, pair.ears[2], Patience(resend_after=1.0, compare_every=20.0), most_items)
    pair.ears[2].exchange = pair.exchanges[2]
    pair.exchanges[2].meet(1)
    return pair


def tell(pair, number):
    """A client's request at side 1; what it became, once it is settled."""
    request = Request("client", number)
    pair.exchanges[1].open(request)
    pair.exchanges[1].tell(2, ("key", number), number, request)
    pair.exchanges[1].close_if_settled(request)
    return request


def test_more_than_a_peer_may_have_kept_is_not_taken_in_nor_settled():
    pair = bounded(100)
    for number in range(100):
        tell(pair, number)
    pair.run(10)
    assert len(pair.exchanges[1].settled) == 100
    refused = tell(pair, 100)
    pair.run(50)
    assert len(pair.ears[2].tables[1]) == 100
    assert pair.exchanges[1].missing(refused) == (2,)
    assert set(pair.exchanges[2].overfull) == {1}
    assert pair.exchanges[2].refused > 0
    pair.exchanges[1].validate()


def test_who_starts_anew_again_and_again_has_no_more_kept():
    """Streams that never come to their end: what was said in those before may still be repeated, for all we know."""
    most, ears = 100, Ears()
    ears.exchange = exchange = Exchange(1, 1, ears, Patience(), most, 1 << 30)
    exchange.meet(2)
    for stream in range(1, 20):
        items = tuple(Put(("key", stream, number), "value") for number in range(most))
        exchange.receive(Control(2, 1, 0, (1, stream), 1, items, (-1, -1), 0, ()), float(stream))
    assert len(exchange.said[2]) <= 3 * most
    assert exchange.refused > 0


def test_what_a_peer_takes_back_makes_room():
    pair = bounded(100)
    for begin in (0, 100):
        for number in range(begin, begin + 100):
            tell(pair, number)
        pair.run(10)
    assert len(pair.ears[2].tables[1]) == 100
    for number in range(50, 160):
        pair.exchanges[1].untell(2, ("key", number), Request("client", number))
    pair.run(200)
    assert pair.agree()
    assert not pair.exchanges[2].overfull
    before = pair.exchanges[2].refused
    pair.run(100)
    assert pair.exchanges[2].refused == before


def test_what_stands_goes_on_to_stand_while_a_peer_is_overfull():
    pair = bounded(50)
    for number in range(50):
        tell(pair, number)
    pair.run(10)
    tell(pair, 50)
    kept = {("key", number) for number in range(50)}
    for _ in range(300):
        pair.run(1)
        assert pair.ears[2].tables[1].keys() == kept, "nothing flickers, though all is told anew from time to time"


def test_bytes_are_bounded_too():
    pair = Pair()
    pair.exchanges[2] = Exchange(2, 1, pair.ears[2], Patience(), 1_000, 10 * ITEM_BYTES)
    pair.ears[2].exchange = pair.exchanges[2]
    pair.exchanges[2].meet(1)
    for number in range(10):
        tell(pair, number)
    pair.run(10)
    for number in range(10):
        pair.exchanges[1].tell(2, ("key", number), "longer", Request("client", number))
    pair.run(10)
    assert set(pair.ears[2].tables[1].values()) == set(range(10))
    assert set(pair.exchanges[2].overfull) == {1}


@pytest.mark.parametrize("most", [(10, 10**9), (10**9, 10 * ITEM_BYTES)], ids=["items", "bytes"])
def test_all_peers_together_may_have_only_so_much_kept(most):
    """One could make up many others."""

    def says(peer, stream, *items):
        exchange.receive(Control(peer, 1, 0, (1, stream), 1, (*items, Complete()), (0, 0), 0, ()), 0.0)

    exchange = Exchange(1, 1, Ears(), Patience(), 1_000, 10**9, most)
    peers = range(2, 7)
    for peer in peers:
        exchange.meet(peer)
        says(peer, 1, *(Put(("key", number), number) for number in range(3)))
        exchange.validate()
    assert exchange.said_by_all.items == 12  # a message that begins with room is taken in whole
    assert set(exchange.overfull) == {6}
    exchange.part(2)
    exchange.validate()
    says(6, 2, *(Put(("key", number), number) for number in range(3)))
    assert not exchange.overfull
    assert {peer: len(said) for peer, said in exchange.said.items()} == dict.fromkeys(range(3, 7), 3)
    says(3, 2, *(Put(("key", number), number) for number in range(3)))  # it says the same anew, though all is full
    assert set(exchange.overfull) == set()
    exchange.validate()


def test_a_lost_peer_has_no_more_kept_for_it_than_what_it_is_to_know():
    pair = Pair()
    pair.exchanges[1].lose(2)
    nobody = Request("client", -1)
    for number in range(3 * DEFAULTS.peer_unsettled):
        pair.exchanges[1].tell(2, ("key", number), number, nobody)
        pair.exchanges[1].untell(2, ("key", number - 10), nobody)
        assert len(pair.exchanges[1]._channels[2].unsettled) <= DEFAULTS.peer_unsettled + 40
    pair.exchanges[1].regain(2)
    pair.run(200)
    assert pair.agree()
    assert len(pair.ears[2].tables[1]) == 10


def test_the_agenda_has_few_entries_that_are_no_longer_true():
    pair = Pair()
    for number in range(2_000):
        pair.now += 0.001
        pair.exchanges[1].tell(2, ("key", 1), number, Request("client", 1))
        for exchange in pair.exchanges.values():
            for message in exchange.messages(pair.now):
                pair.exchanges[message.target].receive(message, pair.now)
        assert len(pair.exchanges[1]._agenda) < 100
    pair.run(20)
    assert pair.agree()
