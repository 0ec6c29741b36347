"""The command ``mvenet``: it parses and prints, and computes nothing itself."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its dependencies, say how to install them."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(f"The mvenet command needs {error.name}: pip install 'mvenet[cli]'")
    from mvenet import _commands

    _commands.app()
