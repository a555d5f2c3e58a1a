"""The client for threads and gevent: `with mercast.blocking.connect() as c`."""

from mercast.client.blocking import Advertisement, Client, Subscription, Trace, connect

__all__ = ["Advertisement", "Client", "Subscription", "Trace", "connect"]
