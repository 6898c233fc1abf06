"""Pages whose figures are written by commands, between two comments: `<!-- NAME -->` and `<!-- /NAME -->`."""

from pathlib import Path


def put(page, name, lines):
    """Replace what a page says between the comments of this name."""
    path = Path(__file__).parents[1] / page
    before, _, rest = path.read_text().partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not end:
        raise LookupError(f"{page} has no place for {name}")
    path.write_text("\n".join([f"{before}<!-- {name} -->", *lines, f"{end}{after}"]))
