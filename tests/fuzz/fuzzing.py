"""Rounds of fuzzing: a seed and a number make a round; after each one all must hold that must."""

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic

from fuzz.conversations import ADMIN, CLIENT, CORPUS, DECODER, PEER, files, from_text, is_believed, to_text
from fuzz.decoders import decode
from fuzz.mutations import mutated, mutated_frame
from fuzz.target import Target

ROUND = {CLIENT: 60, PEER: 90, ADMIN: 30}
"""Conversations with each port."""

FRAMES = 2_000
"""For the decoders, in each round."""


class Broken(Exception):  # noqa: N818 - it is what was looked for
    """Something does not hold that must; these conversations did it."""

    def __init__(self, problems, conversations):
        super().__init__("\n".join(problems))
        self.problems, self.conversations = problems, conversations


class Fuzzing:
    """`async with Fuzzing() as fuzzing`: a pair of brokers for strangers, and one for those that are believed."""

    def __init__(self, believed=(False, True)):
        self._believed = believed
        self._ends = AsyncExitStack()
        self.targets = {}
        self.conversations = self.frames = 0

    async def __aenter__(self):
        async with AsyncExitStack() as ends:
            for believed in self._believed:
                self.targets[believed] = await ends.enter_async_context(Target(believed))
            self._ends = ends.pop_all()
        return self

    async def __aexit__(self, *_):
        await self._ends.aclose()

    async def round(self, seed, number):
        said = [mutated(f"{seed}.{number}.{k}", port) for port, count in ROUND.items() for k in range(count)]
        await self.have(said)
        await self.have([mutated_frame(f"{seed}.{number}.{k}") for k in range(FRAMES)])

    async def have(self, conversations):
        """Have these conversations, each with whom it is for; Broken, if that did any harm."""
        for one in (one for one in conversations if one.port == DECODER):
            self.frames += 1
            if wrong := decode(one):
                raise Broken([wrong], [one])
        spoken = [one for one in conversations if one.port != DECODER]
        outcomes = await asyncio.gather(
            *(
                self._have(target, [one for one in spoken if is_believed(one) == believed])
                for believed, target in self.targets.items()
            )
        )
        for broken in filter(None, outcomes):
            raise broken

    async def _have(self, target, conversations):
        if not conversations:
            return None
        self.conversations += len(conversations)
        await target.play(conversations)
        problems = await target.problems()
        return Broken(problems, conversations) if problems else None


async def narrowed(broken, tell=lambda _: None):
    """The fewest of the conversations that do the same to fresh brokers; all of them, if no part does."""
    while len(broken.conversations) > 1:
        half = len(broken.conversations) // 2
        for part in (broken.conversations[:half], broken.conversations[half:]):
            tell(f"looking for the culprit: {len(part)} of {len(broken.conversations)} conversations again")
            found = await again(part)
            if found is not None:
                broken = found
                break
        else:
            break
    return broken


async def again(conversations):
    """What these do to fresh brokers; None if it is no harm."""
    try:
        async with Fuzzing({is_believed(one) for one in conversations if one.port != DECODER}) as fuzzing:
            await fuzzing.have(conversations)
    except Broken as broken:
        return broken
    return None


def keep(conversations, folder: Path = CORPUS):
    """A new file of the corpus, named by what was done and by the seed."""
    first = conversations[0]
    name = re.sub(r"[^a-z0-9.+]+", "-", first.note.lower())
    file = folder / first.port / f"found-{name}{'-and-others' if len(conversations) > 1 else ''}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(to_text(conversations))
    return file


async def replay_all(fuzzing, folder: Path = CORPUS):
    """Everything in the corpus."""
    await fuzzing.have([one for file in files(folder) for one in from_text(file.read_text())])


def until(seconds):
    """Numbers of rounds, as long as there is time."""
    end, number = monotonic() + seconds, 0
    while monotonic() < end:
        number += 1
        yield number
