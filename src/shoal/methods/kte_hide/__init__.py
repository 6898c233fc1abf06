"""kte-hide: hide everyone in every window of time, the method of the paper of that name."""

from shoal.methods.kte_hide.method import KteHide

__all__ = ["KteHide"]
