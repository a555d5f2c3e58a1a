"""Routing strategies: a folder per family. Pure.

A strategy is an object with one mutator, `handle(now, stimulus) -> effects`, and `next_deadline()`.
"""
