"""Functions: calls, recursion, addresses of functions, and the functions of the runtime."""

import numpy as np
import pytest

from lego_mlir import sim
from lego_mlir.diagnostics import LegoError

LANES = np.arange(64, dtype="u4")

INDEX = """
    .reg .b32 %i, %x, %y; .reg .b64 %out, %at; .reg .pred %p;
    mov.u32 %i, %tid.x;
    ld.param.u64 %out, [out];
    mad.wide.u32 %at, %i, 4, %out;
"""


def kernel(functions, body, extra=""):
    return (
        f"{functions}\n.visible .entry k(.param .u64 out {extra})\n{{\n{INDEX}\n{body}\nret;\n}}\n"
    )


SQUARE = """
.func (.param .b32 result) square(.param .b32 x)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [x];
    mul.lo.s32 %r2, %r1, %r1;
    st.param.b32 [result+0], %r2;
    ret;
}
"""

CALL = """
    {
    .param .b32 param0; .param .b32 result0;
    st.param.b32 [param0+0], IN;
    call.uni (result0), NAME, (param0);
    ld.param.b32 OUT, [result0+0];
    }
"""


def call(name, given="%i", result="%x"):
    return CALL.replace("NAME", name).replace("IN", given).replace("OUT", result)


def test_a_function(run):
    out = np.zeros(64, "u4")
    run(
        kernel(SQUARE, call("square") + call("square", "%x") + "st.global.u32 [%at], %x;"),
        [out],
        block=(64, 1, 1),
        checks=True,
    )
    assert (out == LANES**4).all()


def test_parameters_in_registers(run):
    functions = """
    .func (.reg .b32 %sum, .reg .pred %odd) plus(.reg .b32 %a, .reg .b32 %b)
    {
        .reg .b32 %low;
        add.u32 %sum, %a, %b;
        and.b32 %low, %sum, 1;
        setp.ne.u32 %odd, %low, 0;
        ret;
    }
    """
    body = "call (%x, %p), plus, (%i, 7); @%p add.u32 %x, %x, 1000; st.global.u32 [%at], %x;"
    out = np.zeros(64, "u4")
    # The assembler warns of two results, which the linker takes for an error.
    run(kernel(functions, body), [out], block=(64, 1, 1), checks=True, record=False)
    total = LANES + 7
    assert (out == total + 1000 * (total % 2)).all()


def test_divergent_lanes_meet_behind_a_call(run):
    """Two calls of one function in the arms of a branch; both return to their own place."""
    body = f"""
        and.b32 %y, %i, 1;
        setp.eq.u32 %p, %y, 0;
        @%p bra EVEN;
        {call("square")}
        add.u32 %x, %x, 1;
        bra MEET;
    EVEN:
        add.u32 %y, %i, 1;
        {call("square", "%y")}
    MEET:
        shfl.sync.bfly.b32 %x, %x, 1, 31, -1;
        st.global.u32 [%at], %x;
    """
    out = np.zeros(64, "u4")
    run(kernel(SQUARE, body), [out], block=(64, 1, 1), checks=True)
    own = np.where(LANES % 2, LANES**2 + 1, (LANES + 1) ** 2)
    assert (out == own[LANES ^ 1]).all()


def test_a_shuffle_in_a_function_that_lanes_call_from_two_places(run):
    functions = """
    .func (.reg .b32 %to) swap(.reg .b32 %from)
    {
        shfl.sync.bfly.b32 %to, %from, 1, 31, -1;
        ret;
    }
    """
    body = """
        and.b32 %y, %i, 1;
        setp.eq.u32 %p, %y, 0;
        @%p bra EVEN;
        call (%x), swap, (%i);
        bra MEET;
    EVEN:
        mul.lo.u32 %y, %i, 10;
        call (%x), swap, (%y);
    MEET:
        st.global.u32 [%at], %x;
    """
    out = np.zeros(64, "u4")
    run(kernel(functions, body), [out], block=(64, 1, 1), checks=True)
    own = np.where(LANES % 2, LANES, LANES * 10)
    assert (out == own[LANES ^ 1]).all()


FIBONACCI = """
.func (.param .b32 result) fib(.param .b32 n)
{
    .reg .pred %p; .reg .b32 %n, %a, %b, %m;
    ld.param.b32 %n, [n];
    setp.lt.u32 %p, %n, 2;
    @%p bra LEAF;
    sub.u32 %m, %n, 1;
    { .param .b32 p; .param .b32 r; st.param.b32 [p], %m;
      call (r), fib, (p); ld.param.b32 %a, [r]; }
    sub.u32 %m, %n, 2;
    { .param .b32 p; .param .b32 r; st.param.b32 [p], %m;
      call (r), fib, (p); ld.param.b32 %b, [r]; }
    add.u32 %n, %a, %b;
LEAF:
    st.param.b32 [result], %n;
    ret;
}
"""


def test_recursion_of_different_depths(run, order):
    out = np.zeros(64, "u4")
    body = "and.b32 %y, %i, 7;" + call("fib", "%y") + "st.global.u32 [%at], %x;"
    run(kernel(FIBONACCI, body), [out], block=(64, 1, 1), checks=True, **order)
    want = [0, 1, 1, 2, 3, 5, 8, 13]
    assert out.tolist() == [want[n % 8] for n in range(64)]


def test_each_call_has_its_own_local_variables(run):
    """A function stores in its array, calls itself with a pointer to it, and reads it after."""
    functions = """
    .func (.param .b32 result) nest(.param .b32 depth, .param .b64 outer)
    {
        .local .align 4 .b8 own[8];
        .reg .pred %p; .reg .b32 %d, %v, %w; .reg .b64 %o, %a;
        ld.param.b32 %d, [depth];
        ld.param.b64 %o, [outer];
        ld.local.u32 %v, [%o];
        add.u32 %v, %v, %d;
        st.local.u32 [own+4], %v;
        mov.b64 %a, own;
        add.u64 %a, %a, 4;
        setp.eq.u32 %p, %d, 0;
        @%p bra LEAF;
        sub.u32 %d, %d, 1;
        {
            .param .b32 d; .param .b64 o; .param .b32 r;
            st.param.b32 [d], %d;
            st.param.b64 [o], %a;
            call (r), nest, (d, o);
            ld.param.b32 %w, [r];
        }
        ld.local.u32 %v, [own+4];
        mad.lo.u32 %v, %w, 3, %v;
    LEAF:
        st.param.b32 [result], %v;
        ret;
    }
    """
    body = """
        .local .align 4 .b32 mine;
        st.local.u32 [mine], 100;
        mov.b64 %out, mine;
        and.b32 %y, %i, 15;
        {
            .param .b32 d; .param .b64 o; .param .b32 r;
            st.param.b32 [d], %y;
            st.param.b64 [o], %out;
            call (r), nest, (d, o);
            ld.param.b32 %x, [r];
        }
        st.global.u32 [%at], %x;
    """

    def nest(depth, outer):
        own = outer + depth
        return own if depth == 0 else 3 * nest(depth - 1, own) + own

    out = np.zeros(64, "u4")
    run(kernel(functions, body), [out], block=(64, 1, 1), checks=True)
    assert out.tolist() == [nest(n % 16, 100) % 2**32 for n in range(64)]


def test_a_recursion_without_end(run):
    endless = """
    .func down(.reg .b32 %n) { add.u32 %n, %n, 1; call down, (%n); ret; }
    """
    with pytest.raises(LegoError, match=r"inside one another take more than .*stack_bytes") as e:
        run(kernel(endless, "call down, (%i);"), [np.zeros(64, "u4")], block=(64, 1, 1))
    assert "recursion" in e.value.hint


TABLE = f"""
{SQUARE}
.func (.param .b32 result) twice(.param .b32 x)
{{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [x];
    add.s32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
}}
.func other(.param .b64 x) {{ ret; }}
.global .align 8 .u64 table[3] = {{square, twice, other}};
"""

INDIRECT = """
    .reg .b64 %f, %t;
    rem.u32 %y, %i, COUNT;
    mov.u64 %t, table;
    mad.wide.u32 %t, %y, 8, %t;
    ld.global.u64 %f, [%t];
    {
        .param .b32 p; .param .b32 r;
        st.param.b32 [p], %i;
        proto: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (r), %f, (p), proto;
        ld.param.b32 %x, [r];
    }
    st.global.u32 [%at], %x;
"""


def test_a_table_of_functions(run):
    out = np.zeros(64, "u4")
    body = INDIRECT.replace("COUNT", "2")
    run(kernel(TABLE, body), [out], block=(64, 1, 1), checks=True)
    assert (out == np.where(LANES % 2, 2 * LANES, LANES**2)).all()


def test_an_address_of_a_function_of_another_kind(run):
    with pytest.raises(LegoError, match=r"where no function of this kind begins.*thread \(2,"):
        run(
            kernel(TABLE, INDIRECT.replace("COUNT", "3")),
            [np.zeros(64, "u4")],
            block=(64, 1, 1),
        )


def test_a_branch_by_index(run):
    body = """
        and.b32 %y, %i, 3;
        targets: .branchtargets A, B, A, C;
        brx.idx %y, targets;
    A:  mov.u32 %x, 10; bra END;
    B:  mov.u32 %x, 20; bra END;
    C:  mov.u32 %x, 30;
    END:
        shfl.sync.idx.b32 %y, %x, 3, 31, -1;
        add.u32 %x, %x, %y;
        st.global.u32 [%at], %x;
    """
    out = np.zeros(64, "u4")
    run(kernel("", body), [out], block=(64, 1, 1), checks=True)
    assert out.tolist() == [40, 50, 40, 60] * 16
    with pytest.raises(LegoError, match=r"brx.idx selects target 4 of 4, in thread \(4,"):
        run(kernel("", body.replace("%i, 3", "%i, 7")), [out], block=(64, 1, 1))


def test_an_unwritten_register_of_a_function(run):
    functions = """
    .func (.reg .b32 %to) odd(.reg .b32 %from)
    {
        .reg .pred %p; .reg .b32 %low, %some;
        and.b32 %low, %from, 1;
        setp.ne.u32 %p, %low, 0;
        @%p mov.u32 %some, 5;
        mov.u32 %to, %some;
        ret;
    }
    """
    body = "call (%x), odd, (%i); st.global.u32 [%at], %x;"
    with pytest.raises(LegoError, match=r"odd:%some, which has not been written.*thread \(0"):
        run(kernel(functions, body), [np.zeros(64, "u4")], block=(64, 1, 1))


RUNTIME = """
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 w,
    .param .b64 c);
.extern .func (.param .b64 p) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.global .align 1 .b8 text[] = {37, 100, 32, 37, 46, 50, 102, 32, 37, 115, 10, 0};
.global .align 1 .b8 word[3] = {104, 105, 0};
"""


def test_printf(run, capsys):
    """The format is "%d %.2f %s" with a line feed."""
    body = """
        .local .align 8 .b8 values[24];
        .reg .b64 %f, %v, %w; .reg .f64 %d;
        setp.gt.u32 %p, %i, 1;
        @%p exit;
        sub.s32 %x, %i, 7;
        st.local.u32 [values], %x;
        cvt.rn.f64.s32 %d, %x;
        st.local.f64 [values+8], %d;
        mov.u64 %w, word;
        st.local.u64 [values+16], %w;
        mov.u64 %f, text;
        cvta.global.u64 %f, %f;
        mov.u64 %v, values;
        cvta.local.u64 %v, %v;
        { .param .b64 f; .param .b64 v; .param .b32 r;
          st.param.b64 [f], %f; st.param.b64 [v], %v;
          call.uni (r), vprintf, (f, v);
          ld.param.b32 %x, [r]; }
        st.global.u32 [%at], %x;
    """
    out = np.zeros(64, "u4")
    run(kernel(RUNTIME, body), [out], block=(64, 1, 1), checks=True)
    assert capsys.readouterr().out == "-7 -7.00 hi\n-6 -6.00 hi\n"
    assert out[:3].tolist() == [3, 3, 0]


def test_a_failed_assertion(run):
    body = """
        .reg .b64 %w;
        setp.ne.u32 %p, %i, 9;
        @%p exit;
        mov.u64 %w, word;
        { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;
          st.param.b64 [m], %w; st.param.b64 [f], %w; st.param.b32 [l], 12; st.param.b64 [n], %w;
          st.param.b64 [c], 1;
          call.uni __assertfail, (m, f, l, n, c); }
    """
    with pytest.raises(LegoError, match=r"assertion 'hi' failed \(hi:12, in hi\), in thread \(9,"):
        run(kernel(RUNTIME, body), [np.zeros(64, "u4")], block=(64, 1, 1))


def test_malloc(run):
    body = """
        .reg .b64 %m;
        { .param .b64 n; .param .b64 r; st.param.b64 [n], 8;
          call.uni (r), malloc, (n); ld.param.b64 %m, [r]; }
        st.u32 [%m+4], %i;
        ld.u32 %x, [%m+4];
        st.global.u32 [%at], %x;
        { .param .b64 n; st.param.b64 [n], %m; call.uni free, (n); }
        AFTER
    """
    out = np.zeros(64, "u4")
    run(kernel(RUNTIME, body.replace("AFTER", "")), [out], block=(64, 1, 1))
    assert (out == LANES).all()
    with pytest.raises(LegoError, match=r"where there is no buffer"):
        run(kernel(RUNTIME, body.replace("AFTER", "st.u32 [%m], %i;")), [out], block=(64, 1, 1))
    beyond = body.replace("AFTER", "").replace("[%m+4], %i", "[%m+8], %i")
    with pytest.raises(LegoError, match=r"out of bounds.*malloc, which has 8 bytes"):
        run(kernel(RUNTIME, beyond), [out], block=(64, 1, 1))


@pytest.mark.parametrize(
    ("functions", "body", "message"),
    [
        ("", "call nothing;", "nothing is no function of this module"),
        (".func f(.reg .b32 %a) { ret; }", "call f;", "0 arguments where f has 1 of them"),
        (".func (.reg .b32 %a) f { ret; }", "call f;", "0 results where f has 1 of them"),
        (".extern .func sine;", "call sine;", "sine is declared without a body"),
        (SQUARE, ".reg .b64 %f; mov.u64 %f, square; call %f;", "no function whose address"),
        (
            SQUARE,
            ".param .b64 p; .param .b32 r; call (r), square, (p);",
            "p of 8 bytes where square:x has 4",
        ),
        ("", "brx.idx %i, nowhere;", "nowhere is no list of labels"),
    ],
)
def test_bad_calls(functions, body, message):
    text = ".version 8.7\n.target sm_90a\n.address_size 64\n" + kernel(functions, body)
    with pytest.raises(LegoError, match=message) as e:
        sim.launch(text, "k", (1, 1, 1), (1, 1, 1), [np.zeros(1, "u4")])
    assert e.value.location.line > 3


def test_barriers_exits_and_shared_variables_in_a_function(run, order):
    functions = """
    .func (.reg .b32 %to) turn(.reg .b32 %from)
    {
        .shared .align 4 .b8 s[256];
        .reg .pred %p; .reg .b32 %at;
        mov.u32 %at, %tid.x;
        shl.b32 %at, %at, 2;
        st.shared.u32 [%at], %from;
        mov.u32 %to, s;
        bar.sync 0;
        sub.u32 %at, 252, %at;
        ld.shared.u32 %to, [%at];
        setp.eq.u32 %p, %to, 5;
        @%p exit;
        bar.sync 0;
        ret;
    }
    """
    body = "call (%x), turn, (%i); call (%y), turn, (%x); st.global.u32 [%at], %y;"
    out = np.zeros(64, "u4")
    # The thread that reads 5 leaves: its own number is then not written again.
    run(kernel(functions, body), [out], block=(64, 1, 1), **order)
    want = LANES.copy()
    want[58] = 0
    assert (np.delete(out, [5, 58]) == np.delete(want, [5, 58])).all()
    assert out[58] == 0


@pytest.mark.parametrize("seed", range(4))
def test_random_recursive_functions(run, seed, order):
    """Four functions that call each other at random, to different depths in each lane."""
    rng = np.random.default_rng(seed)
    names = [f"f{k}" for k in range(4)]
    constants = rng.integers(1, 100, (4, 4)).tolist()
    picks = rng.integers(0, 4, (4, 3)).tolist()
    functions = "".join(
        f".func (.param .b32 r) {name}(.param .b32 depth, .param .b32 x);\n" for name in names
    )
    for name, (a, b, c, d), (p, q, s) in zip(names, constants, picks, strict=True):

        def call(callee, to, x):
            return f"""{{ .param .b32 pd; .param .b32 px; .param .b32 pr;
                st.param.b32 [pd], %n; st.param.b32 [px], {x};
                call (pr), f{callee}, (pd, px); ld.param.b32 {to}, [pr]; }}"""

        functions += f"""
        .func (.param .b32 r) {name}(.param .b32 depth, .param .b32 x)
        {{
            .local .align 4 .b8 own[4];
            .reg .pred %p; .reg .b32 %n, %x, %y, %z, %bit;
            ld.param.b32 %n, [depth]; ld.param.b32 %x, [x];
            st.local.u32 [own], %x;
            setp.eq.u32 %p, %n, 0;
            @%p bra LEAF;
            sub.u32 %n, %n, 1;
            and.b32 %bit, %x, 1;
            setp.eq.u32 %p, %bit, 1;
            add.u32 %y, %x, {a};
            @%p bra ODD;
            {call(p, "%z", "%y")}
            bra BOTH;
        ODD:
            xor.b32 %y, %x, {b};
            {call(q, "%z", "%y")}
        BOTH:
            mad.lo.u32 %y, %z, 3, %x;
            @%p bra END;
            {call(s, "%z", "%y")}
        END:
            ld.local.u32 %x, [own];
            mad.lo.u32 %x, %x, {c}, %z;
        LEAF:
            add.u32 %x, %x, {d};
            st.param.b32 [r], %x;
            ret;
        }}
        """

    def value(name, n, x):
        (a, b, c, d), (p, q, s) = constants[name], picks[name]
        if n == 0:
            return (x + d) % 2**32
        z = value(q, n - 1, x ^ b) if x % 2 else value(p, n - 1, (x + a) % 2**32)
        if x % 2 == 0:
            z = value(s, n - 1, (z * 3 + x) % 2**32)
        return (x * c + z + d) % 2**32

    body = """
        and.b32 %y, %i, 3;
        { .param .b32 d; .param .b32 x; .param .b32 r;
          st.param.b32 [d], %y; st.param.b32 [x], %i;
          call (r), f0, (d, x); ld.param.b32 %x, [r]; }
        st.global.u32 [%at], %x;
    """
    out = np.zeros(64, "u4")
    run(kernel(functions, body), [out], block=(64, 1, 1), checks=True, **order)
    assert out.tolist() == [value(0, n % 4, n) for n in range(64)]


def test_costs_of_functions(run):
    out = np.zeros(64, "u4")
    body = call("square") + call("square", "%x") + "st.global.u32 [%at], %x;"
    costs = run(kernel(SQUARE, body), [out], block=(64, 1, 1), costs=True)
    rows = {i.opcode: issued for i, issued in costs.issues}
    assert rows["mul.lo.s32"].lanes == 128
    assert costs.classes["control"].lanes >= 64 * 5


def test_a_function_that_nobody_calls_may_hold_anything(run):
    functions = ".func never() { tcgen05.wait::ld.sync.aligned; frobnicate; ret; }"
    out = np.zeros(64, "u4")
    body = "st.global.u32 [%at], %i;"
    run(kernel(functions, body), [out], block=(64, 1, 1), record=False)
    assert (out == LANES).all()
    with pytest.raises(LegoError, match=r"tcgen05.wait::ld.sync.aligned is not modelled"):
        run(kernel(functions, "call never;" + body), [out], block=(64, 1, 1), record=False)


def test_an_alias(run):
    out = np.zeros(64, "u4")
    text = ".visible " + SQUARE.strip() + "\n.visible .alias copy, square;\n"
    text = text.replace(".alias", ".func (.param .b32 r) copy(.param .b32 x);\n.alias")
    run(
        kernel(text, call("copy") + "st.global.u32 [%at], %x;"),
        [out],
        block=(64, 1, 1),
        record=False,
    )
    assert (out == LANES**2).all()
