"""Windows job objects: a child and its own children end when the last handle closes, at the latest with the parent."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _KILL_ON_JOB_CLOSE = 0x2000
    _EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
    _SET_QUOTA, _TERMINATE = 0x0100, 0x0001  # of the process, for AssignProcessToJobObject
    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.CreateJobObjectW.restype = _kernel.OpenProcess.restype = wintypes.HANDLE
    _kernel.CreateJobObjectW.argtypes = [wintypes.LPVOID, wintypes.LPCWSTR]
    _kernel.OpenProcess.argtypes = [wintypes.DWORD, wintypes.BOOL, wintypes.DWORD]
    _kernel.SetInformationJobObject.argtypes = [wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD]
    _kernel.AssignProcessToJobObject.argtypes = [wintypes.HANDLE, wintypes.HANDLE]
    _kernel.TerminateJobObject.argtypes = [wintypes.HANDLE, wintypes.UINT]
    _kernel.CloseHandle.argtypes = [wintypes.HANDLE]

    class _ExtendedLimits(ctypes.Structure):
        """JOBOBJECT_EXTENDED_LIMIT_INFORMATION, of which only the flags are set."""

        _fields_ = (
            ("times", ctypes.c_int64 * 2),
            ("flags", wintypes.DWORD),
            ("working_set", ctypes.c_size_t * 2),
            ("active_processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("classes", wintypes.DWORD * 2),
            ("io", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        )

    class Job:
        """A job with one process. If the system refuses it, the process still ends with its pipe."""

        def __init__(self, pid: int) -> None:
            self._handle = _kernel.CreateJobObjectW(None, None)
            limits = _ExtendedLimits(flags=_KILL_ON_JOB_CLOSE)
            _kernel.SetInformationJobObject(self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
            process = _kernel.OpenProcess(_SET_QUOTA | _TERMINATE, False, pid)
            _kernel.AssignProcessToJobObject(self._handle, process)
            _kernel.CloseHandle(process)

        def kill(self) -> None:
            """End all its processes."""
            _kernel.TerminateJobObject(self._handle, 1)

        def close(self) -> None:
            """End what is left. May be called again."""
            handle, self._handle = self._handle, None
            if handle is not None:
                _kernel.CloseHandle(handle)
