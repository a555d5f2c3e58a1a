"""What an edge heard is settled when its other clusters acknowledge what it told them, or after a time."""

from math import inf

import pytest

from mercast.content import Advertisement
from mercast.overlay.channel import NO_STREAM
from mercast.overlay.neighbourhood import Timing
from mercast.protocol.messages import Complete, Control, Local, Put, Record
from mercast.protocol.stimuli import Received, Tick
from mercast.routing.destination.merc import MERC
from mercast.routing.settings import Settings


@pytest.mark.parametrize("heard", [0.1, 0.3, 0.7, 1.7])
def test_it_is_over_when_the_deadline_is_there_however_sums_are_rounded(heard):
    """0.7 + 10 - 10 is less than 0.7: whoever looks at the difference waits for a deadline that never passes."""
    edge = MERC(10, 1, Settings(clusters=(1, 9), timing=Timing(heart_beat=1000.0)))
    home, backbone = [Record(1, 1, 1, (1,), ((10, 1),))], [Record(20, 1, 1, (2, 9), ((10, 1),))]
    edge.begin_with(0.0, {1: 1}, home, ({20: 1}, backbone))
    items = Complete(), Put(Local("p", 1), Advertisement("quote"))
    edge.handle(heard, Received(1, (Control(1, 10, 0, (1, 1), 1, items, NO_STREAM, 0, ()),)))
    assert edge.exchange.oldest == heard  # broker 20 never answers
    edge.handle(heard + edge.settings.settle_within, Tick())
    assert edge.exchange.oldest == inf
