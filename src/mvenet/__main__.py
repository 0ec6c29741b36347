"""``python -m mvenet``: the command, where its own name is not on the path."""

from mvenet.cli import main

if __name__ == "__main__":
    main()
