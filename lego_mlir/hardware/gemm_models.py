"""The constants of the cost models of GEMMs, and what corrects their estimates.

A card's file has them in `gemm_model` and `gemm_corrections`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MmaModel:
    """Constants of the cost model for `mma.sync` GEMMs, in clocks of a multiprocessor.

    Attributes:
        iteration_clocks: clocks of one round of K-loop iterations, one for each CTA of the
            multiprocessor, in which no `mma` is issued: barriers and the first loads.
        late_copy_clocks: clocks that are added to a round for each iteration that copies are less
            than three ahead.
        cta_clocks: clocks of a CTA outside the K loop: prologue and launch.
        store_bytes_per_clock: bytes of C that a multiprocessor writes in a clock.
        unaligned_store_bytes_per_clock: the same where rows of C begin off 16 bytes.
        element_copy_clocks: clocks that are added to an iteration for each copy of less than 4
            bytes that a thread makes, which waits for its bytes.
        short_copy_clocks: clocks that are added for each copy of 4 or 8 bytes.
        element_issue_clocks: clocks in which a CTA issues the former copy of all its threads,
            while the other CTAs of its multiprocessor issue none.
        short_issue_clocks: the same of the latter copy.
    """

    iteration_clocks: float
    late_copy_clocks: float
    cta_clocks: float
    store_bytes_per_clock: float
    unaligned_store_bytes_per_clock: float
    element_copy_clocks: float
    short_copy_clocks: float
    element_issue_clocks: float
    short_issue_clocks: float


@dataclass(frozen=True, slots=True)
class GemvModel:
    """Constants of the cost model for GEMMs of few columns; see `kernels.gemm.gemv.model`.

    Attributes:
        memory_bytes_per_us: bytes that device memory reads in a microsecond.
        row_run_bytes: bytes that are lost wherever a CTA begins to read a run of a row of A.
        column_run_bytes: the same of a column of A.
        sm_bytes_per_us: bytes that a multiprocessor reads from the L2 cache in a microsecond.
        issue_bytes_per_us: bytes of A that a multiprocessor loads and multiplies in a microsecond
            by eight columns of B, if it only issues instructions.
        column_tile_cost: what is added to that time, relatively, by each further eight columns,
            where A is contiguous along k.
        transposed_tile_cost: the same where it is not.
        b_load_cost: what a byte of B that a warp loads costs, as a fraction of a byte of A.
        row_shift_cost: factor on it where rows of A begin at different positions in a chunk.
        column_shift_cost: the same of columns of A.
        latency_us: microseconds from an iteration's loads to its last `mma`.
        load_us: what each chunk that a lane loads in it adds to that.
        reduce_us: microseconds in which the warps' accumulators are added up.
        reduce_warp_us: what each warp along k adds to that.
        sum_us: what each accumulator that a thread loads for that adds.
        tail_us: microseconds of an access after the K loop, where chunks are shifted.
        split_us: microseconds in which slices of k are added up through the L2 cache.
        split_sum_us: what each accumulator of a thread adds to that.
        pack_us: microseconds of the launch that packs B.
        pack_bytes_per_us: bytes that it reads and writes in a microsecond.
        launch_us: microseconds of a launch besides its waves.
        norm: exponent with which times that overlap are added: 1 for their sum, more for the
            longest.
    """

    memory_bytes_per_us: float
    row_run_bytes: float
    column_run_bytes: float
    sm_bytes_per_us: float
    issue_bytes_per_us: float
    column_tile_cost: float
    transposed_tile_cost: float
    b_load_cost: float
    row_shift_cost: float
    column_shift_cost: float
    latency_us: float
    load_us: float
    reduce_us: float
    reduce_warp_us: float
    sum_us: float
    tail_us: float
    split_us: float
    split_sum_us: float
    pack_us: float
    pack_bytes_per_us: float
    launch_us: float
    norm: float


@dataclass(frozen=True, slots=True)
class WgmmaModel:
    """Constants of the cost model for `wgmma` GEMMs; see `kernels.gemm.wgmma.model`.

    Attributes:
        clocks_per_us: clocks of a multiprocessor in a microsecond, at the rate that the tensor
            cores reach.
        shared_write: clocks to write a row of 128 bytes to shared memory.
        shared_read: clocks in which a warpgroup reads one.
        l2_lines_per_us: lines of 128 bytes that all multiprocessors read from the L2 cache in a
            microsecond.
        sm_lines_per_us: the same of one multiprocessor.
        half_line: cost of a request of 64 bytes, in lines.
        quarter_line: the same of 32 bytes.
        straddling_line: the same of the second line that a row touches whose pitch is no multiple
            of 128 bytes.
        zero_us: microseconds in which TMA fills 16 bytes of a row with zeros that are outside of
            the tensor: on an H200, boxes of 64 rows of 128 bytes of which 16 exist took 1.4 µs.
        zero_row_us: what a row adds to that which is partly outside, if there is one wave of CTAs.
        clipped_us: microseconds for 16 bytes of a tile of C that are outside of it.
        copy_us: microseconds from a TMA copy's issue until its stage can be used.
        copy_wait: the fraction of a step's multiplication that is added to that: a copy begins
            when its stage is free.
        crossing_cost: what a byte costs that both halves of the L2 cache get, as a fraction of a
            byte that device memory moves.
        reader_us: microseconds in which the L2 cache serves one of several requests for a line.
        step_norm: exponent that joins the limits of a step.
        cluster_step_us: microseconds that a step takes longer for each doubling of the cluster.
        store_us_per_byte: microseconds to store a byte of C.
        l2_store_bytes_per_us: bytes of C that all multiprocessors store in a microsecond.
        narrow_store: factor on the time of stores where rows of less than 64 bytes are stored.
        swapped_store: factor on it where C is stored transposed.
        tile_us: microseconds of a tile besides its steps.
        launch_us: microseconds of a launch besides its waves.
        cta_us: what each further CTA of a multiprocessor adds to a launch.
        blocked_us: what is added if the next launch finds no room until this one ends.
        next_wave_us: microseconds from one wave of CTAs to the next if CTAs are not persistent.
        cluster_us: microseconds that a launch takes longer with clusters.
        split_k_us: microseconds in which split-K slices are reduced.
        split_k_us_per_doubling: what is added for each doubling of the slices.
        split_k_us_per_byte: what is added for each byte of accumulators that is exchanged.
        l2_sum_us: microseconds in which slices are added up through the L2 cache.
        l2_sum_us_per_byte: what is added for each byte of accumulators of a CTA.
        l2_ordered_sum_us: microseconds in which one CTA adds up slices in their order.
        l2_ordered_sum_us_per_byte: what is added for each byte of accumulators of all slices.
        cluster_placement: by the CTAs of a cluster, 1 to 8, the fraction of the multiprocessors on
            which whole clusters run at the same time.
        power_us_per_flop: microseconds that the power limit allows for an operation, on average.
        memory_bytes_per_us: bytes that device memory moves in a microsecond.
    """

    clocks_per_us: float
    shared_write: float
    shared_read: float
    l2_lines_per_us: float
    sm_lines_per_us: float
    half_line: float
    quarter_line: float
    straddling_line: float
    zero_us: float
    zero_row_us: float
    clipped_us: float
    copy_us: float
    copy_wait: float
    crossing_cost: float
    reader_us: float
    step_norm: float
    cluster_step_us: float
    store_us_per_byte: float
    l2_store_bytes_per_us: float
    narrow_store: float
    swapped_store: float
    tile_us: float
    launch_us: float
    cta_us: float
    blocked_us: float
    next_wave_us: float
    cluster_us: float
    split_k_us: float
    split_k_us_per_doubling: float
    split_k_us_per_byte: float
    l2_sum_us: float
    l2_sum_us_per_byte: float
    l2_ordered_sum_us: float
    l2_ordered_sum_us_per_byte: float
    cluster_placement: dict[int, float]
    power_us_per_flop: float
    memory_bytes_per_us: float


@dataclass(frozen=True, slots=True)
class UnalignedModel:
    """Constants of the cost of matrices whose rows are not multiples of 16 bytes.

    Attributes:
        copy_bytes_per_us: bytes that re-pitching reads and writes in a microsecond.
        copy_launch_us: microseconds of the launch that re-pitches.
        store_bytes_per_us: bytes of C that threads store in a microsecond, beyond the time that
            the model of `wgmma` has for stores.
        row_store_bytes_per_us: the same where a warp stores 256 bytes of a row.
        element_copy_us: microseconds in which a multiprocessor issues a warp's copy of less than 4
            bytes a lane, through registers.
        short_copy_us: the same of an asynchronous copy of 4 or 8 bytes a lane.
        element_round_us: microseconds from loads of the elements of a tile to those of the next.
        short_round_us: the latency of an asynchronous copy of a tile.
        crowded_copy: factor on these times where shared memory leaves the L1 cache little.
        thread_copy_norm: exponent with which the times of copies by threads and of the rest of a
            launch, which overlap, are added.
    """

    copy_bytes_per_us: float
    copy_launch_us: float
    store_bytes_per_us: float
    row_store_bytes_per_us: float
    element_copy_us: float
    short_copy_us: float
    element_round_us: float
    short_round_us: float
    crowded_copy: float
    thread_copy_norm: float


@dataclass(frozen=True, slots=True)
class Correction:
    """A polynomial by which estimates of a model are corrected; see `kernels.gemm.corrections`.

    Attributes:
        features: the names of its features.
        means: their means, of the configs that it was fitted to.
        deviations: their standard deviations.
        weights: of 1, of the features, and of the products of the first one with itself and those
            after it, of the second one, and so on.
    """

    features: tuple[str, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    weights: tuple[float, ...]
