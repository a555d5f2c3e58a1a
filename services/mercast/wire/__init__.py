"""Bytes <-> protocol (docs/wire.md). Pure: who reads and writes sockets is elsewhere."""
