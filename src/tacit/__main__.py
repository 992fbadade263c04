"""The command ``tacit``, also as ``python -m tacit``; an installation of the estimators alone lacks its packages."""

import sys

from tacit.errors import InputError, require_package


def main() -> None:
    """Run the command and exit with its code."""
    try:
        for package in ("typer", "rich", "matplotlib", "plotly", "jinja2", "pyarrow", "networkx"):
            require_package(package, "the command tacit", "command")
    except InputError as error:
        print(f"tacit: {error}", file=sys.stderr)
        sys.exit(2)
    from tacit.cli import main as command

    command()


if __name__ == "__main__":
    main()
