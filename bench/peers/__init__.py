"""Whom we are compared with. A peer is a function from a case's set-up to its call."""

from bench.gemm.cases import CUBLAS, FAST
from bench.gemm.variants import GROUPED, LOOP
from bench.peers import copies, cublas, grouped, nvcc, torch_compile, torch_eager
from bench.peers.base import Absent, Peer, Setup

PEERS: dict[str, Peer] = {
    "memcpy": copies.memcpy,
    "copy kernel": copies.kernel,
    "torch eager": torch_eager.prepare,
    "torch.compile": torch_compile.prepare,
    "nvcc naive": nvcc.naive,
    "nvcc coalesced": nvcc.coalesced,
    "nvcc padded": nvcc.padded,
    CUBLAS: cublas.prepare,
    FAST: cublas.fast,
    GROUPED: grouped.together,
    LOOP: grouped.apart,
}

__all__ = ["PEERS", "Absent", "Peer", "Setup"]
