"""Stimuli, effects, messages, tap rows: the words that all rooms above speak. Pure.

All are frozen tuples with names, so they cost little to make, compare by value and can be written down as plain data
(`plain.py`): a recorded run is a list of stimuli.
"""
