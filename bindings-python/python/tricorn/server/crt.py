"""Descriptors 0 and 1 on Windows, where the C runtime has standard streams of its own beside the system's.

The engine speaks on the handles that the system names, and names others in their place. What Python and its libraries
print goes through the descriptors of the C runtime, to the handles that these were opened with.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

if sys.platform == "win32":
    import ctypes
    import msvcrt

    _kernel32 = ctypes.WinDLL("kernel32")
    _kernel32.SetStdHandle.argtypes = (ctypes.c_ulong, ctypes.c_void_p)
    _NAMES = {0: 0xFFFFFFF6, 1: 0xFFFFFFF5}
    """The system's numbers of the standard handles: -10 and -11, unsigned."""

    class _Stream:
        """One of the two, moved out of the way."""

        def __init__(self, place: int, instead: int) -> None:
            self._place = place
            self._original = os.dup(place)
            os.dup2(instead, place)
            self._handle = msvcrt.get_osfhandle(place)
            # The C runtime has renamed the system's as well, where the engine is to find what was there.
            _kernel32.SetStdHandle(_NAMES[place], msvcrt.get_osfhandle(self._original))

        def give_back(self) -> None:
            """Puts it back, unless the program has put something else there."""
            with suppress(OSError):
                if msvcrt.get_osfhandle(self._place) == self._handle:
                    os.dup2(self._original, self._place)
                    _kernel32.SetStdHandle(_NAMES[self._place], msvcrt.get_osfhandle(self._place))
                    os.close(self._original)

    _moved: list[_Stream] = []

    def move_aside() -> None:
        """From now on the end of input is at 0, and standard error at 1; the system's handles are what they were."""
        if _moved:
            return
        with open(os.devnull, "r+b", buffering=0) as nothing:
            _moved.append(_Stream(0, nothing.fileno()))
            try:
                os.fstat(2)
                errors = 2
            except OSError:  # closed
                errors = nothing.fileno()
            _moved.append(_Stream(1, errors))

    def give_back() -> None:
        """Puts 0 and 1 back to where they were, after the engine has done so with the system's handles."""
        while _moved:
            _moved.pop().give_back()
