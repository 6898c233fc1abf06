"""kte-hide, the method of the paper of that name, in its own folder."""

from shoal.methods.kte_hide.method import KteHide

__all__ = ["KteHide"]
