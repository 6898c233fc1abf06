"""The long description and the links of the package, which a package index shows far from these files.

Set SHOAL_URL to where the repository is published, e.g. https://example.org/shoal, and every link in the README becomes
absolute: SHOAL_URL/blob/vVERSION/FILE, and SHOAL_URL/raw/… for pictures. Without it, links to files become plain text,
because they would lead nowhere.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["Links", "long_description", "project_urls"]

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def long_description(text: str, url: str, version: str) -> str:
    """Return a README with absolute links; without a URL, with no links to files and no pictures of ours."""

    def absolute(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if ":" in target or target.startswith("#"):
            return link[0]
        if not url:
            return "" if picture else words
        return f"{picture}[{words}]({url}/{'raw' if picture else 'blob'}/v{version}/{target})"

    return re.sub(r"\n{3,}", "\n\n", _LINK.sub(absolute, text))


def project_urls(url: str, version: str) -> dict[str, str]:
    """Return the links beside the description, if it is known where the repository is."""
    if not url:
        return {}
    files = f"{url}/blob/v{version}"
    return {
        "Homepage": url,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{url}/issues",
        "Security policy": f"{files}/SECURITY.md",
    }


class Links(MetadataHookInterface):
    """Fills in what `pyproject.toml` calls dynamic: readme and urls."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        """Add the long description and the links to the metadata."""
        url = os.environ.get("SHOAL_URL", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        readme = long_description(text, url, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
        metadata["urls"] = project_urls(url, metadata["version"])
