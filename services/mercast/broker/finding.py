"""The Kubernetes API tells the overlays of a broker whom to call."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from mercast.broker.config import BrokerConfig
from mercast.broker.config_kubernetes import me
from mercast.broker.overlay import Overlay
from mercast.membership.kubernetes import Kubernetes, View


@asynccontextmanager
async def finding(config: BrokerConfig, overlays: Sequence[Overlay]) -> AsyncIterator[None]:
    """Inside the block; the first overlay is of the broker's home, the second, if any, of the backbone."""

    def tell(view: View) -> None:
        for overlay, addresses in zip(overlays, view, strict=False):
            overlay.hint(addresses)

    kubernetes = Kubernetes(me(config), tell)
    for overlay in overlays:
        overlay.finding = kubernetes.lacks
    task = asyncio.create_task(kubernetes.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
