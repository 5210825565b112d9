"""The implementations that we are compared with; a peer is a function from a `Setup` to a call."""

from bench.gemm.cases import CUBLAS, CUBLAS_FAST
from bench.gemm.variants import GROUPED, PER_GROUP
from bench.peers import copies, cublas, grouped, nvcc, reads, torch_compile, torch_eager
from bench.peers.base import Absent, Peer, Setup

PEERS: dict[str, Peer] = {
    "memcpy": copies.memcpy,
    "copy kernel": copies.copy_kernel,
    "torch eager": torch_eager.prepare,
    "torch.compile": torch_compile.prepare,
    "nvcc naive": nvcc.naive,
    "nvcc coalesced": nvcc.coalesced,
    "nvcc padded": nvcc.padded,
    CUBLAS: cublas.prepare,
    CUBLAS_FAST: cublas.prepare_fast,
    reads.READ: reads.read_kernel,
    GROUPED: grouped.one_launch,
    PER_GROUP: grouped.per_group,
}

__all__ = ["PEERS", "Absent", "Peer", "Setup"]
