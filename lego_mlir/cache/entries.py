"""What the cache holds, by its key: code with the assembler's warnings, and links between keys.

The payload of an entry is a line of JSON, the warnings, and the product: PTX, a cubin or a bundle.
A bundle is checked as one from a stranger is (`artifact/bundle.py`). The entry of a `KernelKey` is
the digest of a `ModuleKey`: kernels whose modules are equal share one artifact.

Artifacts that this process has found or made stay in memory, too.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from lego_mlir.artifact import Artifact
from lego_mlir.artifact.bundle import unpack
from lego_mlir.cache.folders import folder
from lego_mlir.cache.keys import KernelKey, ModuleKey
from lego_mlir.cache.store import Store, current_store
from lego_mlir.diagnostics import LegoError

_MAX_IN_MEMORY = 256
"""Artifacts; one has about 100 kB."""

_DIGEST = re.compile(rb"[0-9a-f]{64}")

_in_memory: OrderedDict[str, Entry] = OrderedDict()
_links: OrderedDict[str, str] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True, slots=True)
class Entry:
    """A product of a compilation.

    Attributes:
        product: an artifact; the bytes of PTX or of a cubin.
        warnings: what the assembler warned of.
    """

    product: Artifact | bytes
    warnings: tuple[str, ...] = ()

    @property
    def artifact(self) -> Artifact:
        """The product that is an artifact."""
        assert isinstance(self.product, Artifact)
        return self.product

    @property
    def data(self) -> bytes:
        """The product as a file has it."""
        return self.product if isinstance(self.product, bytes) else self.product.to_bytes()


def is_on() -> bool:
    """Return whether there is a cache."""
    return folder() is not None


def find(key: ModuleKey) -> Entry | None:
    """Return the entry of a key; `None` if there is none that is whole."""
    store = current_store()
    return None if store is None else _find(store, key.digest, key)


def find_artifact(key: KernelKey) -> Artifact | None:
    """Return the artifact that the link of a kernel's key leads to; `None` if there is none."""
    store = current_store()
    if store is None:
        return None
    digest = key.digest
    with _lock:
        linked = _links.get(digest)
    if linked is None:
        payload = store.get(digest)
        if payload is None:
            return None
        if _DIGEST.fullmatch(payload) is None:
            store.remove(digest)
            return None
        linked = payload.decode()
    found = _find(store, linked, key)
    if found is None or not isinstance(found.product, Artifact):
        return None
    _remember_link(digest, linked)
    return found.product


def keep(key: ModuleKey, entry: Entry) -> None:
    """Keep an entry; one that exceeds a limit on bundles is not kept."""
    store = current_store()
    if store is None:
        return
    digest = key.digest
    _remember(digest, entry)
    with suppress(LegoError):
        store.put(digest, json.dumps(entry.warnings).encode() + b"\n" + entry.data)


def link(key: KernelKey, to: ModuleKey) -> None:
    """Let the key of a kernel lead to the entry of its module."""
    store = current_store()
    if store is not None:
        _remember_link(key.digest, to.digest)
        store.put(key.digest, to.digest.encode())


def forget() -> None:
    """Drop what this process has in memory; what is on disk stays."""
    with _lock:
        _in_memory.clear()
        _links.clear()


def _find(store: Store, digest: str, key: ModuleKey | KernelKey) -> Entry | None:
    """Return the entry of a digest if it is as `key` needs it; remove it if it is damaged."""
    with _lock:
        if (known := _in_memory.get(digest)) is not None:
            _in_memory.move_to_end(digest)
            return known
    payload = store.get(digest)
    if payload is None:
        return None
    try:
        found = _read(payload, is_bundle=not isinstance(key, ModuleKey) or key.product == "bundle")
        if isinstance(found.product, Artifact) and not _fits(found.product, key):
            raise LegoError("the artifact is for another target, or checks something else")
    except (LegoError, RecursionError, ValueError):
        store.remove(digest)
        return None
    _remember(digest, found)
    return found


def _fits(artifact: Artifact, key: ModuleKey | KernelKey) -> bool:
    return (artifact.target, artifact.checked) == (key.target, key.check)


def _read(payload: bytes, *, is_bundle: bool) -> Entry:
    """Return the entry of a payload.

    Raises:
        LegoError: it holds no right bundle.
        ValueError: it has another form.
    """
    line, end, data = payload.partition(b"\n")
    warnings = json.loads(line)
    if not (end and isinstance(warnings, list) and all(isinstance(w, str) for w in warnings)):
        raise ValueError("no warnings")
    return Entry(unpack(data) if is_bundle else data, tuple(warnings))


def _remember(digest: str, entry: Entry) -> None:
    with _lock:
        _in_memory[digest] = entry
        while len(_in_memory) > _MAX_IN_MEMORY:
            _in_memory.popitem(last=False)


def _remember_link(digest: str, linked: str) -> None:
    with _lock:
        _links[digest] = linked
        while len(_links) > _MAX_IN_MEMORY:
            _links.popitem(last=False)
