"""Ready-made kernels, written with the public API; the layouts of their arguments are parameters.

Each family has a folder, with problem, config, heuristic and kernel body: `gemm`, `permute`,
`moves`, `rows`, `attention`.
"""

from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.forward import attention
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.matmul import matmul
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.several.grouped import grouped_matmul
from lego_mlir.kernels.gemm.several.ragged import ragged_matmul
from lego_mlir.kernels.gemm.several.ragged_k import ragged_k_matmul
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.moves.cast import cast
from lego_mlir.kernels.moves.gather import gather_rows
from lego_mlir.kernels.moves.joins import concatenate, split
from lego_mlir.kernels.moves.shifts import crop, flip, pad, roll
from lego_mlir.kernels.permute.transpose import permute, transpose
from lego_mlir.kernels.rows.activations import dropout, geglu, soft_cap, swiglu
from lego_mlir.kernels.rows.builder import rows
from lego_mlir.kernels.rows.config import RowsConfig
from lego_mlir.kernels.rows.cross_entropy import cross_entropy, cross_entropy_backward
from lego_mlir.kernels.rows.gradients import (
    layernorm_backward,
    log_softmax_backward,
    rmsnorm_backward,
    softmax_backward,
)
from lego_mlir.kernels.rows.norms import layernorm, rmsnorm
from lego_mlir.kernels.rows.problem import Argument as RowArgument
from lego_mlir.kernels.rows.quantize import rmsnorm_quantized
from lego_mlir.kernels.rows.rope import rope
from lego_mlir.kernels.rows.selection import argmax, cumsum, topk
from lego_mlir.kernels.rows.softmax import log_softmax, softmax

__all__ = [
    "AttentionConfig",
    "GemmConfig",
    "GemvConfig",
    "MmaConfig",
    "RowArgument",
    "RowsConfig",
    "WgmmaConfig",
    "argmax",
    "attention",
    "cast",
    "concatenate",
    "crop",
    "cross_entropy",
    "cross_entropy_backward",
    "cumsum",
    "dropout",
    "flip",
    "gather_rows",
    "geglu",
    "grouped_matmul",
    "layernorm",
    "layernorm_backward",
    "log_softmax",
    "log_softmax_backward",
    "matmul",
    "pad",
    "permute",
    "ragged_k_matmul",
    "ragged_matmul",
    "rmsnorm",
    "rmsnorm_backward",
    "rmsnorm_quantized",
    "roll",
    "rope",
    "rows",
    "soft_cap",
    "softmax",
    "softmax_backward",
    "split",
    "swiglu",
    "topk",
    "transpose",
]
