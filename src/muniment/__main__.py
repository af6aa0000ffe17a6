"""``python -m muniment`` is the ``muniment`` command."""

from muniment.cli import main

main()
