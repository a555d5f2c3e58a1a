"""The commands of scenarios, on a simulator.

Faults take no time. After what a client does one second passes, in which messages travel (10 ms a link) and requests
settle, but no silence is noticed yet; `settle` lets time pass until nothing happens any more, `wait` as long as it
says. Below a command stands all that happened since the one before. Settings are those that brokers have by default.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import yaml
from scenarios.journal import END, FAULT, Journal
from scenarios.names import Names
from scenarios.script import CommandError
from scenarios.tables import sprt, tables, trt

from mercast.content import Filter, read_declarations
from mercast.overlay.topology import MOST_COST
from mercast.protocol import stimuli
from mercast.protocol.stimuli import Stimulus
from mercast.routing.core import Core
from mercast.routing.destination.ddbr import DDBR
from mercast.routing.filtering.fbr import FBR
from mercast.routing.filtering.flooding import Flooding
from mercast.routing.groups.unicast import Unicast
from mercast.routing.rendezvous.static_hash import StaticHash
from mercast.routing.settings import Settings
from mercast.sim.simulator import Simulator

STRATEGIES: dict[str, Callable[[int, int], Core]] = {
    "D-DBR": DDBR,
    "D-DBR covering": partial(DDBR, settings=Settings(rule="covering")),
    "FBR": FBR,
    "FBR covering": partial(FBR, settings=Settings(covering=True)),
    "FBR without repair": partial(FBR, settings=Settings(repair=False)),
    "flooding": Flooding,
    "unicast": Unicast,
    "static hash": StaticHash,
}
MOMENT = 1.0
QUIET = 6.0
"""Seconds without news after which nothing will happen: longer than it takes to notice a silent neighbour (3.5 heart-
beats and one to look) and to connect again."""
LONGEST = 120
"""Seconds after which `settle` gives up."""


C = TypeVar("C", bound=Core)


class Command(NamedTuple):
    usage: str
    pattern: re.Pattern[str]
    action: Callable[..., list[str] | None]
    """A method of Stage; what it answers is shown."""
    is_fault: bool


COMMANDS: list[Command] = []

NAME = r"[\w-]+"
INTEREST = r"(?P<type>\*|[\w.]+)(?: WHERE (?P<where>.+))?"


def command(usage: str, pattern: str, is_fault: bool = False) -> Callable[[Any], Any]:
    """Enter a method of Stage as what is done for lines of this pattern; its groups are the arguments."""

    def enter(action: Callable[..., None]) -> Callable[..., None]:
        COMMANDS.append(Command(usage, re.compile(pattern), action, is_fault))
        return action

    return enter


def understood(line: str) -> tuple[Command, dict[str, str]]:
    for one in COMMANDS:
        if found := one.pattern.fullmatch(line):
            return one, found.groupdict()
    usages = "\n".join(f"    {one.usage}" for one in COMMANDS)
    raise CommandError(f"this cannot be understood; what can be said is\n{usages}")


class Stage:
    def __init__(self) -> None:
        self.names = Names()
        self.journal = Journal(self.names)
        self._simulator: Simulator | None = None
        self.clients: dict[str, int] = {}
        """Where each client is."""

    def do(self, line: str) -> list[str]:
        """Carry out a command; what came of it."""
        said, arguments = understood(line)
        shown = said.action(self, **arguments)
        return [*self.journal.take(), *(shown or ())]

    # -- the set -----------------------------------------------------------------------------------------------------

    @command("strategy NAME", r"strategy (?P<name>.+)")
    def strategy(self, name: str) -> None:
        if name not in STRATEGIES:
            raise CommandError(f"no strategy {name!r}: there are {', '.join(STRATEGIES)}")
        if self._simulator is not None:
            raise CommandError("a scenario has one strategy")
        self._simulator = Simulator(STRATEGIES[name], seed=1, cost=self.journal.watch)

    @property
    def simulator(self) -> Simulator:
        if self._simulator is None:
            raise CommandError("a scenario begins with `strategy NAME`")
        return self._simulator

    @command("links A-B B-C:COST ...", r"links (?P<links>\w.*)")
    def links(self, links: str) -> None:
        """Link brokers, start those that are new, and let them find each other; this part of the story is not told."""
        found = [_link(text) for text in links.split()]
        self.names.add_brokers(name for one, other, _ in found for name in (one, other))
        ends = [(self.names.number(one), self.names.number(other), cost) for one, other, cost in found]
        for broker in sorted({broker for *pair, _ in ends for broker in pair} - self.simulator.brokers.keys()):
            self.simulator.start(broker)
        for one, other, cost in ends:
            self.simulator.link(one, other, cost=cost)
        self.settle()
        self.journal.take()

    @command("clients NAME@A NAME@B ...", rf"clients (?P<clients>{NAME}@.*)")
    def place(self, clients: str) -> None:
        for client in clients.split():
            name, _, broker = client.partition("@")
            if name in self.clients:
                raise CommandError(f"{name} is at {self.names.broker(self.clients[name])} already")
            self.clients[name] = self._alive(broker)

    @command("watch control", r"watch control")
    def watch_control(self) -> None:
        """From now on, tell what brokers tell each other of advertisements and subscriptions."""
        self.journal.control = True

    # -- what clients do ---------------------------------------------------------------------------------------------

    @command(
        "CLIENT declares TYPE [under PARENT] {attribute: kind, ...}",
        rf"(?P<client>{NAME}) declares (?P<type>[\w.]+)( under (?P<parent>[\w.]+))? (?P<attributes>\{{.*\}})",
    )
    def declare(self, client: str, type: str, parent: str | None, attributes: str) -> None:
        number = self.names.request(client, f"the declaration of {type}")
        (declaration,) = read_declarations(f"types: {{{type}: {{attributes: {attributes}}}}}")
        self._ask(client, stimuli.Declare(client, number, replace(declaration, parent=parent)))

    @command("CLIENT advertises NAME: TYPE [WHERE ...]", rf"(?P<client>{NAME}) advertises (?P<name>{NAME}): {INTEREST}")
    def advertise(self, client: str, name: str, type: str, where: str | None) -> None:
        self._ask(client, stimuli.Advertise(client, self.names.new(client, name), *_interest(type, where)))

    @command(
        "CLIENT subscribes NAME [without echo]: TYPE or * [WHERE ...]",
        rf"(?P<client>{NAME}) subscribes (?P<name>{NAME})(?P<no_echo> without echo)?: {INTEREST}",
    )
    def subscribe(self, client: str, name: str, no_echo: str | None, type: str, where: str | None) -> None:
        number = self.names.new(client, name)
        self._ask(client, stimuli.Subscribe(client, number, *_interest(type, where), not no_echo))

    @command("CLIENT unadvertises NAME", rf"(?P<client>{NAME}) unadvertises (?P<name>{NAME})")
    def unadvertise(self, client: str, name: str) -> None:
        made, number = self.names.request_of(client, name), self.names.request(client, f"the end of {name}")
        self._ask(client, stimuli.Unadvertise(client, number, made))

    @command("CLIENT unsubscribes NAME", rf"(?P<client>{NAME}) unsubscribes (?P<name>{NAME})")
    def unsubscribe(self, client: str, name: str) -> None:
        made, number = self.names.request_of(client, name), self.names.request(client, f"the end of {name}")
        self._ask(client, stimuli.Unsubscribe(client, number, made))

    @command(
        "CLIENT publishes NAME: TYPE {attribute: value, ...}",
        rf"(?P<client>{NAME}) publishes (?P<name>{NAME}): (?P<type>[\w.]+) (?P<attributes>\{{.*\}})",
    )
    def publish(self, client: str, name: str, type: str, attributes: str) -> None:
        try:
            content = yaml.safe_load(attributes)
        except yaml.YAMLError:
            raise CommandError("attributes are written as {price: 5, symbol: IBM}") from None
        self._ask(client, stimuli.Publish(client, self.names.new(client, name), type, content, 0))

    @command("CLIENT leaves", rf"(?P<client>{NAME}) leaves")
    def leave(self, client: str) -> None:
        self._ask(client, stimuli.Leave(client))
        self._gone(client)

    def _ask(self, client: str, stimulus: Stimulus) -> None:
        self.simulator.do(self._where(client), stimulus)
        self._pass(MOMENT)

    # -- faults ------------------------------------------------------------------------------------------------------

    @command("crash A", r"crash (?P<broker>\w+)", is_fault=True)
    def crash(self, broker: str) -> None:
        """Its clients are gone with it."""
        number = self._alive(broker)
        self.simulator.crash(number)
        for client in [client for client, where in self.clients.items() if where == number]:
            self._gone(client)
            self.journal.say(self.simulator.now, FAULT, f"{client} is gone with {broker}")

    @command("restart A", r"restart (?P<broker>\w+)", is_fault=True)
    def restart(self, broker: str) -> None:
        if self.names.number(broker) in self.simulator.brokers:
            raise CommandError(f"broker {broker} is alive")
        self.simulator.start(self.names.number(broker))

    @command("cut A-B ...  (both ways; A>B one way)", r"cut (?P<ways>\w+[->].*)", is_fault=True)
    def cut(self, ways: str) -> None:
        """Everything on the way is lost, and neither end is told."""
        self._set_cut(self._ways(ways), True)

    @command("mend A-B ...", r"mend (?P<ways>\w+[->].*)", is_fault=True)
    def mend(self, ways: str) -> None:
        self._set_cut(self._ways(ways), False)

    @command("partition A B ...  (cut off from the others)", r"partition (?P<brokers>\w+(?: \w+)*)", is_fault=True)
    def partition(self, brokers: str) -> None:
        some = {self.names.number(broker) for broker in brokers.split()}
        self._set_cut([way for way in self.simulator.links() if (way[0] in some) != (way[1] in some)], True)

    @command("heal  (mend all that is cut)", r"heal", is_fault=True)
    def heal(self) -> None:
        self._set_cut(sorted(self.journal.cuts), False)

    @command("after SECONDS FAULT  (during the next command)", r"after (?P<seconds>\d+(?:\.\d+)?) (?P<line>.+)")
    def after(self, seconds: str, line: str) -> None:
        fault, arguments = understood(line)
        if not fault.is_fault:
            raise CommandError("only faults can be put off: crash, restart, cut, mend, partition, heal")

        def happen() -> None:
            self.journal.say(self.simulator.now, FAULT, f"now {line}")
            fault.action(self, **arguments)

        self.simulator.at(self.simulator.now + float(seconds), happen)

    def _ways(self, text: str) -> list[tuple[int, int]]:
        ways = []
        for part in text.split():
            found = re.fullmatch(r"(\w+)([->])(\w+)", part)
            if found is None:
                raise CommandError(f"{part!r} is no way to cut or mend: A-B for both ways, A>B for one")
            there = self.names.number(found[1]), self.names.number(found[3])
            if there not in self.simulator.links():
                raise CommandError(f"there is no link {found[1]}-{found[3]}")
            ways += [there] if found[2] == ">" else [there, there[::-1]]
        return ways

    def _set_cut(self, ways: list[tuple[int, int]], cut: bool) -> None:
        for way in ways:
            self.simulator.set_cut(*way, cut)
        (self.journal.cuts.update if cut else self.journal.cuts.difference_update)(ways)

    # -- time --------------------------------------------------------------------------------------------------------

    @command("settle", r"settle")
    def settle(self) -> None:
        started = self.simulator.now
        while self.simulator.now < max(started, self.journal.last_news) + QUIET or self.journal.unsettled:
            if self.simulator.now > started + LONGEST:
                self.journal.say(self.simulator.now, END, f"not settled after {LONGEST} seconds")
                return
            self._pass(MOMENT)

    @command("wait SECONDS", r"wait (?P<seconds>\d+(?:\.\d+)?)")
    def wait(self, seconds: str) -> None:
        self._pass(float(seconds))

    def _pass(self, seconds: float) -> None:
        self.simulator.run(self.simulator.now + seconds)

    # -- what is to be seen ------------------------------------------------------------------------------------------

    @command("tables A B ...", r"tables (?P<brokers>\w+(?: \w+)*)")
    def tables(self, brokers: str) -> list[str]:
        cores = {broker: self.simulator.brokers[self._alive(broker)] for broker in brokers.split()}
        return [f"{broker}  {tables(core, self.names)}" for broker, core in cores.items()]

    @command("sprt A", r"sprt (?P<broker>\w+)")
    def sprt(self, broker: str) -> list[str]:
        return sprt(self.simulator.brokers[self._alive(broker)], self.names)

    @command("trt  (of all brokers)", r"trt")
    def trt(self) -> list[str]:
        return trt(self._cores(Core), self.names)

    @command("owner TYPE  (by static hash)", r"owner (?P<type>[\w.]+)")
    def owner(self, type: str) -> list[str]:
        said: dict[int, list[int]] = {}
        for core in self._cores(StaticHash):
            said.setdefault(core.owner(type), []).append(core.me)
        return [f"{self.names.broker(owner)}, say {self.names.brokers(who)}" for owner, who in sorted(said.items())]

    @command("duplicates  (advertisements that came again, by FBR)", r"duplicates")
    def duplicates(self) -> list[str]:
        return [f"{self.names.broker(core.me)}  {core.duplicates}" for core in self._cores(FBR)]

    def _cores(self, strategy: type[C]) -> list[C]:
        cores = [core for _, core in sorted(self.simulator.brokers.items())]
        fitting = [core for core in cores if isinstance(core, strategy)]
        if len(fitting) < len(cores):
            raise CommandError(f"only {strategy.__name__} has this")
        return fitting

    # -- who is where ------------------------------------------------------------------------------------------------

    def _where(self, client: str) -> int:
        if client not in self.clients:
            raise CommandError(f"no client {client!r}: `clients` names {', '.join(self.clients) or 'none yet'}")
        return self.clients[client]

    def _alive(self, broker: str) -> int:
        number = self.names.number(broker)
        if number not in self.simulator.brokers:
            raise CommandError(f"broker {broker} is down")
        return number

    def _gone(self, client: str) -> None:
        del self.clients[client]
        self.journal.unsettled = {asked for asked in self.journal.unsettled if asked[0] != client}


def _interest(type: str, where: str | None) -> tuple[Any, Filter]:
    return None if type == "*" else type, Filter.parse(where or "")


def _link(text: str) -> tuple[str, str, int]:
    found = re.fullmatch(r"(\w+)-(\w+)(?::(\d+))?", text)
    if found is None or found[1] == found[2] or not 1 <= int(found[3] or 1) <= MOST_COST:
        raise CommandError(f"{text!r} is no link: A-B, or A-B:3 for one that costs 3 (1 to {MOST_COST})")
    return found[1], found[2], int(found[3] or 1)
