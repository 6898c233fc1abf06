"""The ledger: a private book of releases, which notices when the same people are published again."""

from shoal.publishing.ledger.book import Book, open_book
from shoal.publishing.ledger.overlap import Hidden, Overlap, Shared

__all__ = ["Book", "Hidden", "Overlap", "Shared", "open_book"]
