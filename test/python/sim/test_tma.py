"""Bulk and bulk tensor copies against plain loops over the elements of a box."""

import itertools

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError

DONE = "mbarrier::complete_tx::bytes"
MAP = ("map[128]", "align 64 .b8")
HEAD = """
    .reg .pred %p, %first; .reg .b32 %t, %n, %x, %y; .reg .b64 %o, %in, %a, %m, %g, %state;
    .shared .align 1024 .b8 tile[{shared}];
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x;
    mov.u32 %n, %ntid.x;
    setp.eq.u32 %first, %t, 0;
    ld.param.u64 %o, [o];
    @%first mbarrier.init.shared.b64 [bar], 1;
    @%first fence.mbarrier_init.release.cluster;
    fence.proxy.async;
    bar.sync 0;
"""
WAIT = """
SPIN:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra SPIN;
"""
DUMP = """
    mov.u32 %x, %t;                     // all of the tile, word by word
OUT:
    setp.ge.u32 %p, %x, {words};
    @%p bra DONE;
    mov.u32 %y, tile;
    mad.lo.u32 %y, %x, 4, %y;
    mad.wide.u32 %a, %x, 4, %o;
    ld.shared.b32 %y, [%y];
    st.global.b32 [%a], %y;
    add.u32 %x, %x, %n;
    bra.uni OUT;
DONE:
"""
CLEAR = """
    mov.u32 %x, %t;
FILL:
    setp.ge.u32 %p, %x, {words};
    @%p bra FILLED;
    mov.u32 %y, tile;
    mad.lo.u32 %y, %x, 4, %y;
    st.shared.b32 [%y], -1;
    add.u32 %x, %x, %n;
    bra.uni FILL;
FILLED:
    fence.proxy.async.shared::cta;
    bar.sync 0;
"""


def load_kernel(rank, coordinates, size, shared, at=0):
    listed = ", ".join(map(str, coordinates))
    return (
        (HEAD + CLEAR).format(shared=shared, words=shared // 4)
        + f"""
        mov.b64 %m, map;
        cvta.param.u64 %m, %m;
        @%first prefetch.tensormap [%m];
        @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};
        @%first cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.{DONE}
            [tile+{at}], [%m, {{{listed}}}], [bar];
        """
        + WAIT
        + DUMP.format(words=shared // 4)
    )


def swizzle_offset(offset, swizzle):
    """Where byte `offset` of a box goes: 16-byte units are permuted by their 128-byte row."""
    row, piece = offset // 128, offset // 16
    mates = {"none": 1, "32B": 2, "64B": 4, "128B": 8}[swizzle]
    piece = piece // mates * mates + (piece % mates ^ row % mates)
    return piece * 16 + offset % 16


def box_of(tensor, start, box, steps=None):
    """The elements of a box, outermost first, as (value or None where outside, position)."""
    shape = tensor.shape[::-1]
    steps = steps or (1,) * len(box)
    counts = [box[0], *(-(-b // s) for b, s in zip(box[1:], steps[1:], strict=True))]
    for position, index in enumerate(itertools.product(*(range(n) for n in counts[::-1]))):
        steps_here = (1, *steps[1:])
        where = [x + i * s for x, i, s in zip(start, index[::-1], steps_here, strict=True)]
        inside = all(0 <= x < n for x, n in zip(where, shape, strict=True))
        yield (tuple(where[::-1]) if inside else None), position


def pitch_of(tensor, box, swizzle):
    """Bytes of a row in shared memory: the whole width of a swizzle."""
    return box[0] * tensor.itemsize if swizzle == "none" else int(swizzle[:-1])


def expected_tile(tensor, start, box, shared, *, swizzle="none", steps=None, nan=False, at=0):
    """The bytes of shared memory after a load."""
    tile = np.full(shared, 0xFF, np.uint8)
    size = tensor.itemsize
    # The NaN is what an H200 was seen to fill with.
    outside = np.full(size // 2, 0x7FF7 if nan else 0, "u2") if size > 1 else np.zeros(1, "u1")
    for where, position in box_of(tensor, start, box, steps):
        value = tensor[where] if where is not None else outside
        row, column = divmod(position, box[0])
        to = swizzle_offset(at + row * pitch_of(tensor, box, swizzle) + column * size, swizzle)
        tile[to : to + size] = np.frombuffer(value.tobytes(), np.uint8)
    return tile


def random_tensor(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype)


def bytes_of(tensor, box, steps=None):
    steps = steps or (1,) * len(box)
    outer = [-(-b // s) for b, s in zip(box[1:], steps[1:], strict=True)]
    return int(np.prod([box[0], *outer])) * tensor.itemsize


CASES = {
    "1d": ((4096,), "u4", (128,), (76,), {}),
    "2d": ((48, 64), "f4", (16, 24), (8, 9), {}),
    "2d f16 128B": ((64, 128), "f2", (64, 32), (32, 16), {"swizzle": "128B"}),
    "2d f32 128B": ((64, 128), "f4", (32, 16), (4, 7), {"swizzle": "128B"}),
    "2d f16 64B": ((64, 128), "f2", (32, 32), (8, 16), {"swizzle": "64B"}),
    "2d u8 32B": ((64, 128), "u1", (32, 40), (16, 3), {"swizzle": "32B"}),
    "2d narrower than 128B": ((64, 128), "f2", (32, 16), (8, 16), {"swizzle": "128B"}),
    "2d narrower than 64B": ((64, 128), "f2", (8, 24), (8, 16), {"swizzle": "64B"}),
    "2d over the low edge": ((32, 64), "f4", (16, 8), (-4, -3), {}),
    "2d over the high edge": ((32, 64), "f2", (64, 16), (40, 24), {"swizzle": "128B"}),
    "2d all outside": ((32, 64), "f4", (16, 8), (64, 5), {}),
    "2d odd extents": ((31, 56), "f2", (32, 8), (40, 27), {"swizzle": "64B"}),
    "3d": ((6, 20, 16), "u4", (8, 4, 3), (-4, 18, 4), {}),
    "3d f64": ((6, 20, 16), "f8", (16, 4, 2), (2, 1, 5), {"swizzle": "128B"}),
    "4d": ((3, 4, 10, 16), "u2", (16, 3, 2, 2), (8, 8, 3, -1), {}),
    "5d": ((2, 3, 4, 5, 16), "s4", (4, 2, 2, 2, 2), (12, 4, 1, 2, 1), {"swizzle": "32B"}),
    "steps": ((40, 64), "f4", (16, 10), (4, 3), {"steps": (1, 3)}),
    "steps over the edge": (
        (40, 64),
        "f2",
        (
            32,
            24,
        ),
        (16, 30),
        {"steps": (2, 5)},
    ),
    "nan f32": ((32, 64), "f4", (16, 8), (56, 28), {"nan": True}),
    "nan f16": ((32, 64), "f2", (32, 8), (-8, 28), {"nan": True, "swizzle": "64B"}),
    "nan f64": ((32, 64), "f8", (4, 8), (62, 28), {"nan": True}),
    "not at 1024": ((64, 128), "f2", (64, 8), (32, 16), {"swizzle": "128B", "at": 384}),
    "64B not at 512": ((64, 128), "f2", (32, 8), (32, 16), {"swizzle": "64B", "at": 128}),
}


def map_of(tensor, box, options):
    return sim.TensorMap(
        tensor,
        box,
        swizzle=options.get("swizzle", "none"),
        element_strides=options.get("steps"),
        fill="nan" if options.get("nan") else "zero",
    )


@pytest.mark.parametrize("case", CASES)
def test_loads(run, case):
    shape, dtype, box, start, options = CASES[case]
    dtype = dtype.replace("s", "i")
    tensor = random_tensor(shape, dtype)
    size = bytes_of(tensor, box, options.get("steps"))
    shared = 4096 if size <= 3072 else 8192
    out = np.zeros(shared, "u1")
    text = load_kernel(len(shape), start, size, shared, options.get("at", 0))
    run(text, [out, map_of(tensor, box, options)], parameters=(("o", "u64"), MAP), block=(64, 1, 1))
    model = expected_tile(
        tensor,
        start,
        box,
        shared,
        swizzle=options.get("swizzle", "none"),
        steps=options.get("steps"),
        at=options.get("at", 0),
        nan=options.get("nan", False),
    )
    assert out.tolist() == model.tolist()


STORE = """
    mov.b64 %m, map;
    cvta.param.u64 %m, %m;
    mov.u32 %x, %t;                     // the tile holds the bytes of `in`
IN:
    setp.ge.u32 %p, %x, {words};
    @%p bra FULL;
    ld.param.u64 %in, [in];
    mad.wide.u32 %a, %x, 4, %in;
    ld.global.b32 %y, [%a];
    mov.u32 %n, tile;
    mad.lo.u32 %n, %x, 4, %n;
    st.shared.b32 [%n], %y;
    mov.u32 %n, %ntid.x;
    add.u32 %x, %x, %n;
    bra.uni IN;
FULL:
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @!%first bra DONE;
    {store};
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
DONE:
"""
STORES = {
    "2d": ((48, 64), "f4", (16, 24), (8, 9), {}),
    "2d 128B over the edge": ((40, 64), "f2", (64, 16), (16, 30), {"swizzle": "128B"}),
    "3d 32B": ((4, 10, 32), "u2", (16, 4, 2), (24, 8, 3), {"swizzle": "32B"}),
    "narrower than 64B": ((40, 64), "f2", (16, 16), (16, 30), {"swizzle": "64B"}),
    "steps": ((40, 64), "f4", (16, 10), (4, 3), {"steps": (1, 3)}),
}


@pytest.mark.parametrize("case", STORES)
def test_stores(run, order, case):
    shape, dtype, box, start, options = STORES[case]
    tensor, data = random_tensor(shape, dtype), random_tensor(1024, "u4", 1)
    listed = ", ".join(map(str, start))
    store = (
        f"cp.async.bulk.tensor.{len(shape)}d.global.shared::cta.tile.bulk_group "
        f"[%m, {{{listed}}}], [tile]"
    )
    text = (HEAD + STORE).format(shared=4096, words=1024, store=store)
    expected = tensor.copy()
    stored = data.view("u1")
    for where, position in box_of(tensor, start, box, options.get("steps")):
        if where is not None:
            swizzle = options.get("swizzle", "none")
            row, column = divmod(position, box[0])
            at = row * pitch_of(tensor, box, swizzle) + column * tensor.itemsize
            at = swizzle_offset(at, swizzle)
            expected[where] = stored[at : at + tensor.itemsize].view(tensor.dtype)[0]
    arguments = [np.zeros(1, "u4"), data, map_of(tensor, box, options)]
    run(text, arguments, parameters=(("o", "u64"), ("in", "u64"), MAP), block=(64, 1, 1), **order)
    assert tensor.tobytes() == expected.tobytes()


WORD = 2**32
REDUCTIONS = {
    "add u4": ("add", "u4", lambda old, new: old + new),
    "add f4": ("add", "f4", lambda old, new: old + new),
    "add f2": ("add", "f2", lambda old, new: old + new),
    "min i4": ("min", "i4", np.minimum),
    "max u8": ("max", "u8", np.maximum),
    "and u4": ("and", "u4", lambda old, new: old & new),
    "or u4": ("or", "u4", lambda old, new: old | new),
    "xor u8": ("xor", "u8", lambda old, new: old ^ new),
    "inc u4": ("inc", "u4", lambda old, new: np.where(old >= new, 0, old + 1).astype("u4")),
    "dec u4": (
        "dec",
        "u4",
        lambda old, new: np.where((old == 0) | (old > new), new, old - 1).astype("u4"),
    ),
}


@pytest.mark.parametrize("case", REDUCTIONS)
def test_reductions(run, order, case):
    operation, dtype, combined = REDUCTIONS[case]
    tensor, data = random_tensor((20, 32), dtype), random_tensor((16, 16), dtype, 1)
    text = (HEAD + STORE).format(
        shared=4096,
        words=data.nbytes // 4,
        store=f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group "
        "[%m, {24, 6}], [tile]",
    )
    expected = tensor.copy()
    expected[6:, 24:] = combined(tensor[6:, 24:], data[:14, :8])
    arguments = [np.zeros(1, "u4"), data, sim.TensorMap(tensor, (16, 16))]
    run(text, arguments, parameters=(("o", "u64"), ("in", "u64"), MAP), block=(64, 1, 1), **order)
    assert tensor.tolist() == expected.tolist()


def test_a_minimum_takes_the_number_of_a_nan(run):
    """Of f16 elements, as an H200 was seen to do."""
    tensor, data = np.zeros((8, 16), "f2"), np.full((8, 16), np.nan, "f2")
    tensor[1], data[1], tensor[2], data[3] = np.nan, 2, 5, -7
    text = (HEAD + STORE).format(
        shared=4096,
        words=64,
        store="cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group "
        "[%m, {0, 0}], [tile]",
    )
    arguments = [np.zeros(1, "u4"), data, sim.TensorMap(tensor, (16, 8))]
    run(text, arguments, parameters=(("o", "u64"), ("in", "u64"), MAP), block=(64, 1, 1))
    assert tensor[:, 0].tolist() == [0, 2, 5, -7, 0, 0, 0, 0]


def test_a_store_begins_at_no_negative_coordinate(run):
    tensor, data = np.zeros((8, 16), "f4"), np.zeros(1024, "u4")
    text = (HEAD + STORE).format(
        shared=4096,
        words=64,
        store="cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {0, -1}], [tile]",
    )
    arguments = [np.zeros(1, "u4"), data, sim.TensorMap(tensor, (16, 8))]
    parameters = (("o", "u64"), ("in", "u64"), MAP)
    with pytest.raises(LegoError, match=r"a box that begins at \(0, -1\): below 0 only a load may"):
        run(text, arguments, parameters=parameters, record=False)


RUNS = {
    "store": ("cp.async.bulk.global.shared::cta.bulk_group [%o], [tile+32], 64", "u4", None),
    "add f2": (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%o], [tile+32], 64",
        "f2",
        lambda old, new: old + new,
    ),
    "min i8": (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s64 [%o], [tile+32], 64",
        "i8",
        np.minimum,
    ),
}


@pytest.mark.parametrize("case", RUNS)
def test_runs_of_bytes_to_global(run, order, case):
    line, dtype, combined = RUNS[case]
    data, out = random_tensor(128 // np.dtype(dtype).itemsize, dtype), random_tensor(64, dtype, 1)
    text = (HEAD + STORE.replace("mov.b64 %m, map;\n    cvta.param.u64 %m, %m;", "")).format(
        shared=4096, words=32, store=line
    )
    expected = out.copy()
    new = data.view("u1")[32:96].view(dtype)
    expected[: len(new)] = new if combined is None else combined(out[: len(new)], new)
    run(text, [out, data], parameters=(("o", "u64"), ("in", "u64")), block=(64, 1, 1), **order)
    assert out.tolist() == expected.tolist()


def test_a_run_of_bytes_from_global(run, order):
    source, out = random_tensor(1024, "u4"), np.zeros(1024, "u4")
    text = (
        (HEAD + CLEAR).format(shared=4096, words=1024)
        + """
        .reg .b64 %policy;
        createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;
        ld.param.u64 %in, [in];
        @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2080;
        @%first cp.async.bulk.prefetch.L2.global [%in], 1024;
        @%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
            [tile+16], [%in+64], 2048, [bar];
        @%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint
            [tile+2064], [%in], 32, [bar], %policy;
        """
        + WAIT
        + DUMP.format(words=1024)
    )
    run(text, [out, source], parameters=(("o", "u64"), ("in", "u64")), block=(64, 1, 1), **order)
    expected = np.full(1024, 0xFFFFFFFF, "u4")
    expected[4:516], expected[516:524] = source[16:528], source[:8]
    assert out.tolist() == expected.tolist()


def test_a_map_in_global_memory(run):
    """A map is 128 bytes: a kernel may copy it, fence it, and use the copy."""
    tensor, out = random_tensor((16, 32), "f4"), np.zeros((8, 16), "f4")
    text = (
        ".global .align 64 .b8 copied[128];\n.visible .entry k(.param .u64 o, "
        ".param .align 64 .b8 map[128])\n{"
        + HEAD.format(shared=1024)
        + """
        .reg .b64 %c, %w;
        mov.b64 %c, copied;
        setp.lt.u32 %p, %t, 16;
        @!%p bra COPIED;
        mov.b64 %m, map;
        mad.wide.u32 %m, %t, 8, %m;
        ld.param.b64 %w, [%m];
        mad.wide.u32 %g, %t, 8, %c;
        st.global.b64 [%g], %w;
    COPIED:
        fence.proxy.tensormap::generic.release.gpu;
        bar.sync 0;
        fence.proxy.tensormap::generic.acquire.gpu [%c], 128;
        @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
        @%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
            [tile], [%c, {8, 3}], [bar];
        """
        + WAIT
        + DUMP.format(words=128)
        + "ret;\n}\n"
    )
    run(text, [out, sim.TensorMap(tensor, (16, 8))], record=False)
    assert out.tolist() == tensor[3:11, 8:24].tolist()


def test_a_multicast_reaches_the_same_offset_in_each_cta(run, order):
    """Rank 1 of a cluster of 4 copies to ranks 0, 1 and 3; rank 2 copies for itself."""
    tensor, out = random_tensor((32, 16), "u4"), np.zeros((8, 512), "u4")
    text = (
        (HEAD + CLEAR).format(shared=2048, words=512)
        + """
        .reg .b32 %rank, %block; .reg .b16 %mask; .reg .pred %me, %both;
        mov.b64 %m, map;
        cvta.param.u64 %m, %m;
        mov.u32 %rank, %cluster_ctarank;
        mov.u32 %block, %ctaid.x;
        mad.wide.u32 %o, %block, 2048, %o;
        @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
        barrier.cluster.arrive.aligned;
        barrier.cluster.wait.aligned;
        setp.eq.and.u32 %me, %rank, 1, %first;
        mov.b16 %mask, 11;
        @%me cp.async.bulk.tensor.2d.shared::cluster.global.DONE.multicast::cluster
            [tile+512], [%m, {0, %block}], [bar], %mask;
        setp.eq.and.u32 %me, %rank, 2, %first;
        @%me cp.async.bulk.tensor.2d.shared::cluster.global.DONE
            [tile], [%m, {0, 16}], [bar];
        """.replace("DONE", DONE)
        + WAIT
        + DUMP.format(words=512)
        + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    )
    run(
        text,
        [out, sim.TensorMap(tensor, (16, 16))],
        parameters=(("o", "u64"), MAP),
        grid=(8, 1, 1),
        block=(32, 1, 1),
        cluster=(4, 1, 1),
        **order,
    )
    expected = np.full((8, 512), 0xFFFFFFFF, "u4")
    for block in range(8):
        if block % 4 == 2:
            expected[block, :256] = tensor[16:32].ravel()
        else:
            row = block // 4 * 4 + 1
            expected[block, 128:384] = tensor[row : row + 16].ravel()
    assert out.tolist() == expected.tolist()


def one_load(size=1024, coordinates="0, 0", at=0, *, expects=1024, wait=WAIT, more=""):
    return (
        HEAD.format(shared=4096)
        + f"""
        mov.b64 %m, map;
        cvta.param.u64 %m, %m;
        @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], {expects};
        @%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
            [tile+{at}], [%m, {{{coordinates}}}], [bar];
        {more}
        """
        + wait
        + DUMP.format(words=256)
    )


def run_load(run, text, **options):
    tensor, out = random_tensor((32, 16), "u4"), np.zeros((16, 16), "u4")
    arguments = [out, sim.TensorMap(tensor, (16, 16))]
    parameters = (("o", "u64"), MAP)
    run(text, arguments, parameters=parameters, record=False, **options)
    return bool((out == tensor[:16]).all())


def test_a_missing_wait_shows_late(run):
    assert run_load(run, one_load())
    leave = "bra.uni SKIP;" + WAIT + "SKIP:"
    with pytest.raises(
        LegoError, match=r"exits while its shared memory is in use by cp.async.bulk"
    ):
        run_load(run, one_load(wait=leave))
    assert run_load(run, one_load(wait=leave), order="early")
    # With the wait after the use nothing is in flight at the end, but the data is not there.
    used_before = one_load(wait="").replace("DONE:", "DONE:" + WAIT)
    assert not run_load(run, used_before)


@pytest.mark.parametrize(
    ("expects", "message"),
    [
        (2048, "0 of 1 arrivals pending, and 1024 bytes that it expects have not come"),
        (512, "0 of 1 arrivals pending, and 512 bytes have come that nobody expects"),
    ],
)
def test_a_wrong_count_of_bytes_is_a_deadlock(run, order, expects, message):
    with pytest.raises(LegoError) as e:
        run_load(run, one_load(expects=expects), **order)
    assert "deadlock" in str(e.value)
    assert message in str(e.value)


def test_a_missing_expect_is_seen(run):
    """Early bytes are no error, but the phase may be over before they come."""
    text = one_load().replace(
        "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024", "mbarrier.arrive.shared.b64 _, [bar]"
    )
    with pytest.raises(LegoError, match="exits while its shared memory is in use"):
        run_load(run, text)


def test_a_source_reused_too_early_spoils_a_store(run):
    data, out = np.arange(64, dtype="u4"), np.zeros(64, "u4")
    store = "cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 256"
    text = (HEAD + STORE.replace("mov.b64 %m, map;\n    cvta.param.u64 %m, %m;", "")).format(
        shared=4096, words=64, store=store
    )
    waits = {
        "": False,
        "cp.async.bulk.wait_group.read 0;": True,
        "cp.async.bulk.wait_group 0;": True,
        "cp.async.bulk.wait_group.read 1;": False,
    }
    for wait, right in waits.items():
        spoilt = text.replace(
            "cp.async.bulk.wait_group 0;",
            f"{wait} st.shared.b32 [tile+8], 77; cp.async.bulk.wait_group 0;",
        )
        run(spoilt, [out, data], parameters=(("o", "u64"), ("in", "u64")))
        assert (out.tolist() == data.tolist()) is right, wait


def test_a_read_wait_does_not_wait_for_the_write(run):
    """After `.read` alone the target is untouched, late; in random order it may be written."""
    data, out = np.arange(64, dtype="u4"), np.zeros(65, "u4")
    store = "cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 256"
    text = (HEAD + STORE.replace("mov.b64 %m, map;\n    cvta.param.u64 %m, %m;", "")).format(
        shared=4096, words=64, store=store
    )
    text = text.replace(
        "cp.async.bulk.wait_group 0;",
        """cp.async.bulk.wait_group.read 0;
        mov.b32 %n, 0;
    LATER:
        add.u32 %n, %n, 1;
        setp.lt.u32 %p, %n, 4;
        @%p bra LATER;
        ld.global.b32 %x, [%o+4];
        st.global.b32 [%o+256], %x;""",
    )
    seen = set()
    for order, seed in [("late", 0), *(("random", seed) for seed in range(16))]:
        out[:] = 0
        run(text, [out, data], parameters=(("o", "u64"), ("in", "u64")), order=order, seed=seed)
        assert out[:64].tolist() == list(range(64))
        assert order != "late" or out[64] == 0
        seen.add(int(out[64]))
    assert seen == {0, 1}


def test_a_store_that_nobody_waits_for(run):
    store = "cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 256"
    text = (HEAD + STORE.replace("mov.b64 %m, map;\n    cvta.param.u64 %m, %m;", "")).format(
        shared=4096, words=64, store=store
    )
    text = text.replace("cp.async.bulk.wait_group 0;", "")
    arguments = [np.zeros(64, "u4"), np.arange(64, dtype="u4")]
    with pytest.raises(LegoError, match=r"(?s)CTA \(0, 0, 0\) exits .*bulk.wait_group.read 0"):
        run(text, arguments, parameters=(("o", "u64"), ("in", "u64")))


BAD = {
    "misaligned": (one_load(at=64), "a target at byte 64, which is no multiple of 128"),
    "no barrier": (
        one_load().replace("[%m, {0, 0}], [bar]", "[%m, {0, 0}], [tile]"),
        "the mbarrier tile of CTA (0, 0, 0) is not initialised",
    ),
    "a box within 16 bytes": (
        one_load(coordinates="6, 0"),
        "a box that begins at element 6 of a row, byte 24, which is no multiple of 16",
    ),
    "another rank": (
        one_load(coordinates="0, 0, 0").replace("tensor.2d", "tensor.3d"),
        "a tensor of 3 dimensions by the instruction, of 2 by its map",
    ),
    "coordinates": (one_load(coordinates="0, 0, 0"), "the coordinates {0, 0, 0} of a tensor of 2d"),
    "no map": (one_load().replace("cvta.param.u64 %m, %m", "mov.b64 %m, %o"), "lies no tensor map"),
    "over the end": (one_load(at=3200), "out of bounds: cp.async.bulk.tensor.2d"),
    "im2col": (
        one_load().replace("global.mbarrier", "global.im2col.mbarrier"),
        "only the mode .tile of tensor copies is modelled, not .im2col",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_bulk_copies_are_errors(run, case):
    text, message = BAD[case]
    with pytest.raises(LegoError) as e:
        run_load(run, text)
    assert message in str(e.value)


def test_bulk_alignment(run):
    for line, message in {
        "[tile+8], [%o], 64": "a target at byte 8, which is no multiple of 16",
        "[tile], [%o+8], 64": "a source at byte 8",
        "[tile], [%o], 40": "a size of 40",
    }.items():
        body = HEAD.format(shared=128) + (
            "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            f"{line}, [bar];"
        )
        with pytest.raises(LegoError, match=message):
            run(body, [np.zeros(64, "u4")], parameters=(("o", "u64"),), record=False)


F4 = np.zeros((32, 64), "f4")
MAPS = {
    "a box of (300, 1): each is 1 to 256": {"box": (300, 1)},
    "a box whose inner dimension has 12 bytes": {"box": (3, 1)},
    "256 bytes: with a swizzle of 128B at most 128": {"box": (64, 1), "swizzle": "128B"},
    "box of 3 dimensions for a tensor of 2": {"box": (16, 1, 1)},
    "strides of (264,) bytes": {"box": (16, 1), "strides": (264,)},
    "element strides of (1, 9): each is 1 to 8": {"box": (16, 1), "element_strides": (1, 9)},
    "does not fit the array's 8192 bytes": {"box": (16, 1), "shape": (64, 33)},
    "its address, offset 8, is no multiple of 16": {"box": (16, 1), "shape": (60, 31), "offset": 8},
    "no swizzle '256B'": {"box": (16, 1), "swizzle": "256B"},
    "no fill 'one'": {"box": (16, 1), "fill": "one"},
    "no element type 'f8'": {"box": (16, 1), "dtype": "f8"},
    "a fill of NaN for elements of u32": {"box": (16, 1), "dtype": "u32", "fill": "nan"},
    "a tensor of 6 dimensions": {"box": (4,) * 6, "shape": (4,) * 6, "strides": (16,) * 5},
}


@pytest.mark.parametrize("message", MAPS)
def test_maps_that_the_driver_refuses(message):
    with pytest.raises(LegoError) as e:
        sim.TensorMap(F4, **MAPS[message])
    assert message in str(e.value)


def test_a_map_needs_its_parameter(run):
    with pytest.raises(LegoError, match="a tensor map where 8 bytes with an alignment of 8 should"):
        run("ret;", [sim.TensorMap(F4, (16, 1))], parameters=(("m", "u64"),), record=False)


def test_a_tensor_map_of_an_array_slice(run):
    """A map may begin inside an array and have strides of its own."""
    tensor, out = random_tensor((32, 64), "f4"), np.zeros((8, 16), "f4")
    part = sim.TensorMap(
        tensor, (16, 8), shape=(20, 10), strides=(512,), offset=4 * (64 + 8), dtype="f32"
    )
    text = load_kernel(2, (8, 1), 512, 512)
    run(text, [out, part], parameters=(("o", "u64"), MAP))
    seen = tensor[1::2, 8:28][:10]
    expected = np.zeros((8, 16), "f4")
    expected[:, :12] = seen[1:9, 8:20]
    assert out.tolist() == expected.tolist()
