"""The client: asyncio, and the same for threads."""
