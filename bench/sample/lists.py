"""Lists of GEMMs beside the random ones: layers of networks, DeepBench's, few rows or columns.

The layers are those of published configurations: Llama 3 (8B, 70B), DeepSeek V3 (multi-head
latent attention, a dense and an expert MLP), Qwen 2.5 7B, Qwen 3 32B, ViT-L/16, and the MLPs of
DLRM (MLPerf). A layer multiplies rows of activations by a weight of out × in, so k is contiguous in
both operands.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.gemm.cases import OUTPUT_TYPES
from bench.gemm.references import GemmReference

Gemms = Iterator[tuple[str, GemmReference]]
"""GEMMs, each after its class."""

_TOKENS = (1, 16, 256, 4096)
"""Rows of activations of a language model: decoding one sequence, a batch, and prefill."""

_LANGUAGE_MODELS = {
    "Llama 3 8B": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)),
    "Llama 3 70B": ((10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)),
    "DeepSeek V3": (
        (1536, 7168),
        (24576, 1536),
        (576, 7168),
        (32768, 512),
        (7168, 16384),
        (36864, 7168),
        (7168, 18432),
        (4096, 7168),
        (7168, 2048),
    ),
    "Qwen 2.5 7B": ((4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944)),
    "Qwen 3 32B": ((10240, 5120), (5120, 8192), (51200, 5120), (5120, 25600)),
}
"""Out and in of each layer's weight."""

_VIT_ROWS = 197 * 32
"""Patches and the class token of 32 images."""

_VIT = ((3072, 1024), (1024, 1024), (4096, 1024), (1024, 4096))

_DLRM_ROWS = (2048, 32768)
_DLRM = ((512, 13), (256, 512), (128, 256), (1024, 479), (1024, 1024), (512, 1024))
"""The bottom MLP from 13 dense features, and what the top MLP has besides, but its last column."""

_DEEPBENCH = (
    (35, 8457, 1760),
    (6144, 32, 1536),
    (3072, 128, 1024),
    (1760, 128, 1760),
    (7680, 64, 2560),
    (1760, 7133, 1760),
    (512, 32, 512),
    (512, 32, 2048),
    (2048, 32, 512),
)
"""m, n and k of DeepSpeech 2 and of a transformer (Triton 2019, section 6.1)."""

_ORDERS = (("row", "col"), ("row", "row"), ("col", "row"), ("col", "col"))

_FEW = ((1, 8192, 8192), (8192, 1, 8192), (8, 8192, 8192), (16, 8191, 8193), (1, 8191, 8193))
_FEW_ROWS = ((1, 16384, 4096), (2, 28672, 8192), (4, 7168, 16384), (24, 8192, 8192))
_FEW_COLUMNS = ((8192, 16, 8192), (8192, 32, 8192))
"""Few rows or columns, with matrices of 115 MB and more: in all orders, and those of A by rows."""


def layers() -> Gemms:
    """Yield the layers' GEMMs; the class is the network."""
    for network, weights in _LANGUAGE_MODELS.items():
        for out, into in weights:
            for tokens in _TOKENS:
                yield network, _gemm(tokens, out, into, "bf16")
    for out, into in _VIT:
        yield "ViT-L/16", _gemm(_VIT_ROWS, out, into, "f16")
    for out, into in _DLRM:
        for rows in _DLRM_ROWS:
            yield "DLRM", _gemm(rows, out, into, "f16")
    for m, n, k in _DEEPBENCH:
        yield "DeepBench", _gemm(m, n, k, "f16")


def few() -> Gemms:
    """Yield GEMMs of few rows or columns that device memory limits."""
    for m, n, k in _FEW:
        for a, b in _ORDERS:
            yield "few", _gemm(m, n, k, "f16", a, b)
    for m, n, k in (*_FEW_ROWS, *_FEW_COLUMNS):
        for a, b in _ORDERS[:2]:
            yield "few", _gemm(m, n, k, "f16", a, b)
    for m in (1, 16, 32):
        yield "few", _gemm(m, 8192, 16384, "f8E4M3FN")


def _gemm(m: int, n: int, k: int, dtype: str, a: str = "row", b: str = "col") -> GemmReference:
    return GemmReference(m, n, k, dtype, OUTPUT_TYPES[dtype], a, b)  # type: ignore[arg-type]


def official() -> Gemms:
    """Yield the GEMMs of the fixed cases that the library chooses the schedule for."""
    from bench.gemm.cases import CASES

    for case in CASES:
        if isinstance(case.reference, GemmReference) and not case.variant:
            yield "list", case.reference


LISTS = {"layers": layers, "few": few, "official": official}
"""By the name that the command takes."""
