"""`python -m mercast`."""

from mercast.cli import main

main()
