"""The live process: listeners, links, sessions, admin HTTP."""
