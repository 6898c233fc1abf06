"""The independent check of a release, against the original it was made from.

The verifier opens everything through `seen`, and neither package uses the code that makes releases: no module
of `methods`, `search`, `kernels`, `merge`, `measure` or `publishing`. It has its own grid, projection, de-duplication,
screening, search of boxes and reading of manifests and audits. What it shares with the makers:

- the parser of input files: `reading.options`, `reading.parts`, `reading.times`, `reading.days` (days that are moved
  to one start), `reading.spill` (files of numbers that do not fit into memory) and what these use of `reading`. The
  witness in `seen` reads the files again with another parser, and takes only options and the account from this one;
- the data types: `claim`, `frame`, `layouts`, `release`, `traces`, `trajectories`;
- tools that know nothing of releases: `arrow`, `errors`, `folders`, `jit`, `lists`, `memory`, `names`,
  `notebook`, `parallel`, `regular`, `run`, `units`; and `switch`, which finishes an interrupted publication before a
  release is opened;
- what fetches a release from an address: `stores.addresses`, `stores.postgres`, `stores.objects`, and
  `stores.released`, the form of a release in a database, with the code that reads it back.

`tests/unit/test_verifier_shared.py` holds the verifier to this list.
"""

from shoal.verifier.check import MAX_SUPPRESSED, verify
from shoal.verifier.measured import with_measured_claim
from shoal.verifier.signed import verify_signature
from shoal.verifier.verdict import Verdict

__all__ = ["MAX_SUPPRESSED", "Verdict", "verify", "verify_signature", "with_measured_claim"]
