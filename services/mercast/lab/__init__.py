"""Experiments: each claim of the papers, run again, with both figures side by side."""
