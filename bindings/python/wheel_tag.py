"""Tags the wheel: for one platform, and for any Python 3, since what is compiled in it is no extension module."""

from __future__ import annotations

import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelTag(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # auditwheel makes manylinux of it.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
