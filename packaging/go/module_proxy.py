"""Lays a module down as Go's tools ask a proxy for it.

    module_proxy.py MODULE_DIRECTORY PATH VERSION TIME PROXY_DIRECTORY

MODULE_DIRECTORY has the files of the module, PATH is its path, such as example.com/thing; TIME is when the version was
made, in seconds. With GOPROXY=file://PROXY_DIRECTORY they find it, and so they do where a web server has that directory.
"""

from __future__ import annotations

import json
import sys
import time
import zipfile
from pathlib import Path


def main() -> None:
    module, path, version, made, proxy = sys.argv[1:]
    if path != path.lower():
        sys.exit(f"module_proxy: {path}: a proxy has capital letters under other names")
    when = time.gmtime(int(made))
    place = Path(proxy, path, "@v")
    place.mkdir(parents=True, exist_ok=True)
    info = {"Version": version, "Time": time.strftime("%Y-%m-%dT%H:%M:%SZ", when)}
    (place / f"{version}.info").write_text(json.dumps(info) + "\n")
    (place / f"{version}.mod").write_bytes(Path(module, "go.mod").read_bytes())
    with zipfile.ZipFile(place / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(it for it in Path(module).rglob("*") if it.is_file()):
            name = f"{path}@{version}/{file.relative_to(module).as_posix()}"
            archive.writestr(zipfile.ZipInfo(name, when[:6]), file.read_bytes(), zipfile.ZIP_DEFLATED)
    (place / "list").write_text(f"{version}\n")


main()
