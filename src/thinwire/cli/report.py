"""`thinwire report`: one page of what runs came to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def report(
    *runs: str,
    out: Annotated[str, Parameter(help="The page; report.html in the first run's folder if not given.")] = "",
    png: Annotated[bool, Parameter(help="Draw the charts as PNG files beside it, too.")] = True,
) -> int:
    """Make one page of what runs came to: one HTML file that needs nothing else, and pictures beside it.

    Args:
        runs: Folders of runs of one task; their methods are laid side by side.
        out: Where to write it.
        png: Draw pictures too.

    Returns:
        The exit status.
    """
    from thinwire.report import page
    from thinwire.report.read import ReportError

    if not runs:
        raise ReportError("no run was named; write thinwire report FOLDER, for example thinwire report runs/bytes-1")
    first = Path(runs[0])
    path = Path(out) if out else (first if first.is_dir() else first.parent) / "report.html"
    written = page.write(runs, path, pictures=png)
    print(f"Report: {written[0]}")
    if len(written) > 1:
        print(f"and {len(written) - 1} pictures beside it")
    return 0


def write(runs: Sequence[str], path: Path) -> str:
    """Write a page at the end of a run, without pictures, or say why not: a run has its results without one.

    Args:
        runs: Folders.
        path: Of the page.

    Returns:
        Where it is, or why it is nowhere.
    """
    from thinwire.report import page
    from thinwire.report.read import ReportError

    try:
        return str(page.write(runs, path, pictures=False)[0])
    except (ReportError, OSError) as error:
        return f"none, {error}"
