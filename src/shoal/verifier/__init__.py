"""The independent check of a release: from files, with code that shares nothing with the code that makes them."""

from shoal.verifier.check import verify
from shoal.verifier.verdict import Verdict

__all__ = ["Verdict", "verify"]
