"""PRT of FBR: however many copies of a subscription there are, it answers as if each stood by itself."""

from hypothesis import given
from hypothesis import strategies as st

from mercast.content import Filter
from mercast.content.interest import Subscription
from mercast.matching import TypedMatcher, Work
from mercast.protocol.messages import Local
from mercast.routing.filtering.prt import PRT

TREES = [(broker, Local("p", 1)) for broker in range(3)]
SUBSCRIPTIONS = [Subscription("quote", Filter.parse(text)) for text in ("x > 1", "x > 2", "y = 0")]
copies = st.tuples(st.integers(0, 3), st.sampled_from(TREES), st.sampled_from([(9, Local("s", n)) for n in range(3)]))
"""Few of each, so that they meet."""


@given(st.lists(st.tuples(copies, st.sampled_from(SUBSCRIPTIONS))))
def test_copies_come_and_go(changes):
    """A copy that is there already goes; the same name may stand for different subscriptions along different trees."""
    work = Work()
    prt, plain = PRT(TypedMatcher(work=work)), {}
    for copy, subscription in changes:
        if copy in plain:
            prt.remove(copy)
            del plain[copy]
        else:
            prt.add(copy, subscription)
            plain[copy] = subscription
        assert set(prt) == plain.keys()
        assert len(prt) == len(plain)
        assert prt.distinct == len({(origin, one) for (_, _, origin), one in plain.items()})
        for tree in TREES:
            for attributes in ({"x": 2, "y": 1}, {"x": 3, "y": 0}):
                before = work.compared
                wanted = {peer for (peer, of, _), one in plain.items() if of == tree and one.filter.matches(attributes)}
                assert prt.wanted(tree, [(("quote",), attributes)]) == [set(wanted)]
                assert work.compared - before == prt.distinct
