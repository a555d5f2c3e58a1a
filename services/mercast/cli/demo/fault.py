"""At half time an edge broker is killed: the one of all edges that carries most, as the page shows it."""

from time import time

from mercast.broker.local import Local
from mercast.cli.demo.page import Page
from mercast.cli.demo.stage import cluster_name
from mercast.cli.demo.story import Killed, Story


def kill_an_edge(mesh: Local, page: Page, story: Story) -> Killed:
    edges = [one for one in mesh.brokers.values() if one.edge]
    victim = max(edges, key=lambda one: page.rate("forwarded", [one.id]))
    killed = story.killed = Killed(victim.id, cluster_name(victim.cluster), story.now, time())
    mesh.kill(victim.id)
    return killed


def look(page: Page, story: Story) -> bool:
    """Whether the page has come to show it dead just now."""
    killed = story.killed
    if killed is None or killed.shown_after is not None or killed.broker not in page.dead:
        return False
    killed.shown_after = story.now - killed.at
    return True
