"""The file of an artifact: a zip archive of `manifest.json`, `kernels.ptx` and `kernels.cubin`.

The file may come from a stranger. No size that it states is believed, no member but these is
accepted, and no more is inflated than the limit `bundle_bytes` allows.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

from lego_mlir.artifact.consistency import check_fit
from lego_mlir.artifact.model import FORMAT, Artifact
from lego_mlir.artifact.schema import plain, read
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.limits import check_limit, current, limit_error

_MANIFEST, _PTX, _CUBIN = "manifest.json", "kernels.ptx", "kernels.cubin"
_MOST_MANIFEST_BYTES = 1 << 24
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
"""A bit of a member's flags."""

_END, _END_BYTES = b"PK\x05\x06", 22
_MOST_DIRECTORY_BYTES = 4096
"""The limit for the list of members, which is read before they can be counted."""

_MALFORMED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RecursionError,
    RuntimeError,
    ValueError,
)
"""What the readers of zip, JSON and UTF-8 raise for what is none."""


def pack(artifact: Artifact) -> bytes:
    """Return the content of an artifact's file.

    Raises:
        LegoError: the artifact is not as `Artifact.check` wants it, or exceeds a limit.
    """
    artifact.check()
    check_limit("bundle_launches", len(artifact.launches), "this artifact has {} launches")
    manifest = {"format": FORMAT, **plain(artifact)}
    for launch in manifest["launches"]:
        launch["parameters"] = [
            {"argument": p} if isinstance(p, int) else p for p in launch["parameters"]
        ]
    del manifest["ptx"], manifest["cubin"]
    members = {
        _MANIFEST: (json.dumps(manifest, indent=2) + "\n").encode(),
        _PTX: artifact.ptx.encode(),
    }
    if artifact.cubin is not None:
        members[_CUBIN] = artifact.cubin
    check_limit("bundle_bytes", sum(map(len, members.values())), "this artifact has {} bytes")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def load(path: str | os.PathLike[str]) -> Artifact:
    """Read the file of an artifact; see `Artifact.load`."""
    location = Location(os.fspath(path))
    try:
        with Path(path).open("rb") as file:
            return _unpacked(file)
    except OSError as e:
        raise LegoError(f"the artifact cannot be read: {e.strerror}", location=location) from None
    except LegoError as e:
        raise e.at(location) from None


def unpack(data: bytes) -> Artifact:
    """Return the artifact of a file's content; see `Artifact.load`."""
    return _unpacked(io.BytesIO(data))


def _unpacked(file: IO[bytes]) -> Artifact:
    try:
        artifact = _artifact(_members(file))
        check_fit(artifact)
    except _MALFORMED:
        raise LegoError(
            "this file is no lego-mlir artifact",
            hint="make one with legoc INPUT.mlir --emit=bundle -o OUT.lego",
        ) from None
    except LegoError as e:
        e.hint = e.hint or "the bundle is damaged, or not legoc's: make it again with --emit=bundle"
        raise
    return artifact


def _members(file: IO[bytes]) -> dict[str, bytes]:
    """Return the members of an archive by name.

    Raises:
        LegoError: it is larger than allowed.
        ValueError: it is no such archive; or another of `_MALFORMED`.
    """
    size = file.seek(0, os.SEEK_END)
    check_limit("bundle_bytes", size, "this bundle has {} bytes")
    _check_directory(file, size)
    left = current().bundle_bytes
    members: dict[str, bytes] = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.compress_type not in _COMPRESSIONS or member.flag_bits & _ENCRYPTED:
                raise ValueError("no form that pack makes")
            if member.filename in members:
                raise ValueError("two members of one name")
            with archive.open(member) as stream:
                data = stream.read(left + 1)  # whatever the archive says of the member's size
            left -= len(data)
            if left < 0:
                raise limit_error("bundle_bytes", "this bundle holds more than it may, inflated")
            members[member.filename] = data
    return members


def _check_directory(file: IO[bytes], size: int) -> None:
    """Check the end of an archive, so that `zipfile` reads no more of its list than is allowed.

    Raises:
        ValueError: the list is too long, the archive has a comment, or is of the 64-bit form.
    """
    file.seek(max(0, size - _END_BYTES - 20))
    tail = file.read()
    end = tail[-_END_BYTES:]
    if not end.startswith(_END) or end[-2:] != b"\0\0" or b"PK\x06\x07" in tail[:-_END_BYTES]:
        raise ValueError("no end as pack writes it")
    if int.from_bytes(end[12:16], "little") > _MOST_DIRECTORY_BYTES:
        raise ValueError("too many members")


def _artifact(members: dict[str, bytes]) -> Artifact:
    """Return what the members of a bundle say.

    Raises:
        LegoError: something in the manifest is not as it has to be.
        ValueError: a member is missing, or is no JSON or no UTF-8; or another of `_MALFORMED`.
    """
    if len(members[_MANIFEST]) > _MOST_MANIFEST_BYTES:
        raise LegoError(f"the manifest has more than {_MOST_MANIFEST_BYTES} bytes")
    manifest = json.loads(members[_MANIFEST], object_pairs_hook=_object)
    if not isinstance(manifest, dict):
        raise ValueError("no object")
    number = manifest.pop("format", None)
    if type(number) is not int or number != FORMAT:
        version = number if isinstance(number, int) else "that is no number"
        raise LegoError(
            f"this artifact has format {version}, this version reads {FORMAT}",
            hint="compile it again with this version of legoc",
        )
    for name in members:
        if name not in (_MANIFEST, _PTX, _CUBIN):
            raise LegoError(f"the bundle has a member '{name[:64]}', which no bundle has")
    for name in ("ptx", "cubin"):
        if name in manifest:
            raise LegoError(f"{name} is no known field")
    launches = manifest.get("launches")
    if isinstance(launches, list):
        check_limit("bundle_launches", len(launches), "this bundle has {} launches")
    code = {"ptx": members[_PTX].decode(), "cubin": members.get(_CUBIN)}
    artifact: Artifact = read(Artifact, {**manifest, **code})
    return artifact


def _object(pairs: list[tuple[str, Any]]) -> Any:
    """Return an object of the manifest; `{"argument": 3}` is the parameter that is argument 3.

    Raises:
        ValueError: a key stands there twice.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found["argument"] if found.keys() == {"argument"} else found
