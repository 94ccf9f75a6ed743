"""Packs the program and the clients in Python as a wheel: wheel.py OUT_DIR VERSION TARGET PROGRAM CLIENTS_DIR

The wheel has no build step: pip copies the program beside the interpreter, and the clients into its packages. The same
files give the same bytes; SOURCE_DATE_EPOCH is the date of all of them.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

# A static binary needs neither glibc nor musl, so it fits both.
TAGS = {
    "x86_64-unknown-linux": "manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "aarch64-unknown-linux": "manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "x86_64-apple-darwin": "macosx_10_12_x86_64",
    "aarch64-apple-darwin": "macosx_11_0_arm64",
}

out, version, target, program, clients = sys.argv[1:]
tag = next(tag for system, tag in TAGS.items() if target.startswith(system))
info = f"spektacular-{version}.dist-info"
metadata = f"""\
Metadata-Version: 2.4
Name: spektacular
Version: {version}
Summary: {os.environ["DESCRIPTION"]}
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{Path("README.md").read_text(encoding="utf-8")}"""
tags = "".join(f"Tag: py3-none-{system}\n" for system in tag.split("."))
wheel = f"Wheel-Version: 1.0\nGenerator: spektacular\nRoot-Is-Purelib: false\n{tags}"
files = {f"{name}.py": (Path(clients, f"{name}.py").read_bytes(), 0o644) for name in ("spektacular", "spektacular_asyncio")}
files[f"spektacular-{version}.data/scripts/spektacular"] = (Path(program).read_bytes(), 0o755)
files[f"{info}/licenses/LICENSE"] = (Path("LICENSE").read_bytes(), 0o644)
files[f"{info}/METADATA"] = (metadata.encode(), 0o644)
files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, (data, _) in files.items())
files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)

# A zip archive knows no date before 1980.
date = max(time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6], (1980, 1, 1, 0, 0, 0))
with zipfile.ZipFile(Path(out, f"spektacular-{version}-py3-none-{tag}.whl"), "w", zipfile.ZIP_DEFLATED) as archive:
    for name, (data, mode) in files.items():
        entry = zipfile.ZipInfo(name, date)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
