"""The independent check of a release: from files, with code that shares nothing with the code that makes them."""

from shoal.verifier.check import MAX_SUPPRESSED, verify
from shoal.verifier.measured import with_measured_claim
from shoal.verifier.verdict import Verdict

__all__ = ["MAX_SUPPRESSED", "Verdict", "verify", "with_measured_claim"]
