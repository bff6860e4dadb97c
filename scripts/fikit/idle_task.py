"""A task that has come to the daemon and does nothing: `idle_task.py`, with the client's library preloaded.

It calls the hooks around a launch that is none. So it needs neither a GPU nor a driver, and is there at once.
"""
# ruff: noqa: D101

from __future__ import annotations

import ctypes
import time


class Site(ctypes.Structure):  # KescoLaunchSite of kesco/runtime/hooks/launch_hooks.h
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("version", "size")),
        *((name, ctypes.c_char_p) for name in ("kernel", "file")),
        *((name, ctypes.c_uint32) for name in ("line", "column")),
        ("function", ctypes.c_char_p),
    )


class Launch(ctypes.Structure):  # KescoLaunch
    _fields_ = (
        ("function", ctypes.c_void_p), ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_size_t), ("stream", ctypes.c_void_p),
    )  # fmt: skip


loaded = ctypes.CDLL(None)
site = Site(1, ctypes.sizeof(Site), b"nothing", b"idle_task.py", 1, 1, b"main")
launch = Launch(None, (1, 1, 1), (1, 1, 1), 0, None)
loaded.kesco_launch_before(ctypes.byref(site), ctypes.byref(launch))
loaded.kesco_launch_after(ctypes.byref(site), ctypes.byref(launch))
time.sleep(3600)
