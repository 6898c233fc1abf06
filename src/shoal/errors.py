"""Everything that shoal raises on purpose.

    ShoalError                    catch this for all of them
    ├── InputError                the data given can't be used
    │   ├── UnreadableFile        missing, truncated, corrupted, not of a known kind
    │   ├── ColumnsNotFound       user, time or place can't be found among the columns
    │   ├── BadRows               a row breaks a rule, and `strict` was given
    │   ├── NoValidRows           nothing is left after cleaning
    │   ├── Implausible           the data looks like a mistake, and `confirm` does not say that it is right
    │   │   └── LikelySwapped     latitude and longitude seem to be exchanged
    │   └── TooFewUsers           fewer people than the promised k
    ├── SettingsError             an option or a combination of options makes no sense
    ├── OutputError               the release can't be written where it was asked for
    │   └── AlreadyExists         the output is there, and `overwrite` was not given
    ├── SigningError              the key to sign with can't be used; nothing was published
    ├── LedgerError               the ledger of releases can't be used; nothing was published
    │   └── OverlapError          people of this release are in an earlier one, and `allow_overlap` was not given
    ├── TooLarge                  the work would not fit into memory or a stated bound
    ├── NotVerified               the claim could not be shown on the written file; nothing was published
    └── CannotCheck               verify could not come to a verdict

A message says what is wrong, where, and what to do. It never holds a value of the data.
"""

from __future__ import annotations

__all__ = [
    "AlreadyExists",
    "BadRows",
    "CannotCheck",
    "ColumnsNotFound",
    "Implausible",
    "InputError",
    "LedgerError",
    "LikelySwapped",
    "NaiveTimes",
    "NoValidRows",
    "NotVerified",
    "OutputError",
    "OverlapError",
    "SettingsError",
    "ShoalError",
    "SigningError",
    "TooFewUsers",
    "TooLarge",
    "UnreadableFile",
]


class NaiveTimes(UserWarning):
    """Times without a zone were read as UTC, because no zone was given."""


class ShoalError(Exception):
    """The base class of all errors that shoal raises."""


class InputError(ShoalError):
    """The data given can't be used."""


class UnreadableFile(InputError):
    """A file is missing, truncated, corrupted or of no known kind."""


class ColumnsNotFound(InputError):
    """The user, time or place columns can't be found."""


class BadRows(InputError):
    """A row breaks a rule and `strict` was asked for."""


class NoValidRows(InputError):
    """Nothing is left after cleaning."""


class Implausible(InputError):
    """The data looks like a mistake, and was not confirmed."""


class LikelySwapped(Implausible):
    """Latitude and longitude seem to be exchanged."""


class TooFewUsers(InputError):
    """There are fewer people than the promised k."""


class SettingsError(ShoalError):
    """An option, or a combination of options, makes no sense."""


class OutputError(ShoalError):
    """The release can't be written where it was asked for."""


class AlreadyExists(OutputError):
    """The output is there already and overwriting was not asked for."""


class SigningError(ShoalError):
    """The key to sign with can't be used; nothing was published."""


class LedgerError(ShoalError):
    """The ledger of releases can't be used; nothing was published."""


class OverlapError(LedgerError):
    """People of this release are in an earlier release of the ledger, and that was not allowed."""


class TooLarge(ShoalError):
    """The work would not fit into memory or a stated bound."""


class NotVerified(ShoalError):
    """The claim could not be shown on the written file; nothing was published."""


class CannotCheck(ShoalError):
    """Something is missing or can't be read, so a release could not be verified, attacked or evaluated."""
