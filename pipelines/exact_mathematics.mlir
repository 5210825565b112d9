// What operations of the math dialect call in a kernel with `lego.exact_math`, instead of the functions
// of the same names in mathematics.mlir: more instructions, and errors of 2 or 3 units in the last place.
module {
  // 2^x, down to the smallest numbers. Relative error 2^-22 (PTX ISA, "ex2").
  llvm.func internal @__nv_exp2f(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.exp2(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // e^x. Relative error 2^-22: what rounding loses of x log2 e corrects the power.
  llvm.func internal @__nv_expf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %high = llvm.mlir.constant(1.4426950216293335 : f32) : f32
    %low = llvm.mlir.constant(1.925963033500011e-08 : f32) : f32
    %ln2 = llvm.mlir.constant(0.6931471824645996 : f32) : f32
    %t = llvm.fmul %x, %high : f32
    %minus = llvm.fneg %t : f32
    %lost = llvm.intr.fma(%x, %high, %minus) : (f32, f32, f32) -> f32
    %rest = llvm.intr.fma(%x, %low, %lost) : (f32, f32, f32) -> f32
    %y0 = llvm.intr.exp2(%t) : (f32) -> f32
    %c = llvm.fmul %rest, %ln2 : f32
    %y1 = llvm.intr.fma(%y0, %c, %y0) : (f32, f32, f32) -> f32
    // Where the power is infinite or tiny there is nothing to correct.
    %bound = llvm.mlir.constant(128.0 : f32) : f32
    %size = llvm.intr.fabs(%t) : (f32) -> f32
    %is_inside = llvm.fcmp "olt" %size, %bound : f32
    %y = llvm.select %is_inside, %y1, %y0 : i1, f32
    llvm.return %y : f32
  }

  // log x. Relative error 2e-7: n log 2 + log(1 + f), and log(1 + f) = f - f^2/2 + f^3 p(f) with the
  // polynomial p of degree 7 that fits best.
  llvm.func internal @__nv_logf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    // x = 2^n (1 + f) with 1 + f from the root of 1/2 to the root of 2; tiny x are scaled first.
    %least = llvm.mlir.constant(1.17549435e-38 : f32) : f32
    %up = llvm.mlir.constant(8388608.0 : f32) : f32
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %is_tiny = llvm.fcmp "olt" %x, %least : f32
    %scaled = llvm.fmul %x, %up : f32
    %v = llvm.select %is_tiny, %scaled, %x : i1, f32
    %less = llvm.mlir.constant(23.0 : f32) : f32
    %offset = llvm.select %is_tiny, %less, %zero : i1, f32
    %root = llvm.mlir.constant(1060439283 : i32) : i32
    %places = llvm.mlir.constant(23 : i32) : i32
    %bits = llvm.bitcast %v : f32 to i32
    %above = llvm.sub %bits, %root : i32
    %k = llvm.ashr %above, %places : i32
    %power = llvm.shl %k, %places : i32
    %digits = llvm.sub %bits, %power : i32
    %m = llvm.bitcast %digits : i32 to f32
    %f = llvm.fsub %m, %one : f32
    %n0 = llvm.sitofp %k : i32 to f32
    %n = llvm.fsub %n0, %offset : f32

    %pc0 = llvm.mlir.constant(0.3333333134651184 : f32) : f32
    %pc1 = llvm.mlir.constant(-0.250008225440979 : f32) : f32
    %pc2 = llvm.mlir.constant(0.20001226663589478 : f32) : f32
    %pc3 = llvm.mlir.constant(-0.16623356938362122 : f32) : f32
    %pc4 = llvm.mlir.constant(0.14201761782169342 : f32) : f32
    %pc5 = llvm.mlir.constant(-0.131601944565773 : f32) : f32
    %pc6 = llvm.mlir.constant(0.12761549651622772 : f32) : f32
    %pc7 = llvm.mlir.constant(-0.07634429633617401 : f32) : f32
    %p6 = llvm.intr.fma(%pc7, %f, %pc6) : (f32, f32, f32) -> f32
    %p5 = llvm.intr.fma(%p6, %f, %pc5) : (f32, f32, f32) -> f32
    %p4 = llvm.intr.fma(%p5, %f, %pc4) : (f32, f32, f32) -> f32
    %p3 = llvm.intr.fma(%p4, %f, %pc3) : (f32, f32, f32) -> f32
    %p2 = llvm.intr.fma(%p3, %f, %pc2) : (f32, f32, f32) -> f32
    %p1 = llvm.intr.fma(%p2, %f, %pc1) : (f32, f32, f32) -> f32
    %p0 = llvm.intr.fma(%p1, %f, %pc0) : (f32, f32, f32) -> f32
    %ln2 = llvm.mlir.constant(0.6931471824645996 : f32) : f32
    %ln2_low = llvm.mlir.constant(-1.9046542121259336e-09 : f32) : f32
    %minus_half = llvm.mlir.constant(-0.5 : f32) : f32
    %square = llvm.fmul %f, %f : f32
    %cube = llvm.fmul %square, %f : f32
    %small = llvm.fmul %n, %ln2_low : f32
    %s0 = llvm.intr.fma(%cube, %p0, %small) : (f32, f32, f32) -> f32
    %s1 = llvm.intr.fma(%square, %minus_half, %s0) : (f32, f32, f32) -> f32
    %s2 = llvm.fadd %f, %s1 : f32
    %r0 = llvm.intr.fma(%n, %ln2, %s2) : (f32, f32, f32) -> f32

    %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
    %lowest = llvm.mlir.constant(0xFF800000 : f32) : f32
    %nan = llvm.mlir.constant(0x7FC00000 : f32) : f32
    %is_number = llvm.fcmp "olt" %x, %infinity : f32
    %r1 = llvm.select %is_number, %r0, %x : i1, f32
    %is_zero = llvm.fcmp "oeq" %x, %zero : f32
    %r2 = llvm.select %is_zero, %lowest, %r1 : i1, f32
    %is_negative = llvm.fcmp "olt" %x, %zero : f32
    %y = llvm.select %is_negative, %nan, %r2 : i1, f32
    llvm.return %y : f32
  }

  // log2 x. Relative error 3e-7: n + log(1 + f) log2 e, as log.
  llvm.func internal @__nv_log2f(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    // x = 2^n (1 + f) with 1 + f from the root of 1/2 to the root of 2; tiny x are scaled first.
    %least = llvm.mlir.constant(1.17549435e-38 : f32) : f32
    %up = llvm.mlir.constant(8388608.0 : f32) : f32
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %is_tiny = llvm.fcmp "olt" %x, %least : f32
    %scaled = llvm.fmul %x, %up : f32
    %v = llvm.select %is_tiny, %scaled, %x : i1, f32
    %less = llvm.mlir.constant(23.0 : f32) : f32
    %offset = llvm.select %is_tiny, %less, %zero : i1, f32
    %root = llvm.mlir.constant(1060439283 : i32) : i32
    %places = llvm.mlir.constant(23 : i32) : i32
    %bits = llvm.bitcast %v : f32 to i32
    %above = llvm.sub %bits, %root : i32
    %k = llvm.ashr %above, %places : i32
    %power = llvm.shl %k, %places : i32
    %digits = llvm.sub %bits, %power : i32
    %m = llvm.bitcast %digits : i32 to f32
    %f = llvm.fsub %m, %one : f32
    %n0 = llvm.sitofp %k : i32 to f32
    %n = llvm.fsub %n0, %offset : f32

    %pc0 = llvm.mlir.constant(0.3333333134651184 : f32) : f32
    %pc1 = llvm.mlir.constant(-0.250008225440979 : f32) : f32
    %pc2 = llvm.mlir.constant(0.20001226663589478 : f32) : f32
    %pc3 = llvm.mlir.constant(-0.16623356938362122 : f32) : f32
    %pc4 = llvm.mlir.constant(0.14201761782169342 : f32) : f32
    %pc5 = llvm.mlir.constant(-0.131601944565773 : f32) : f32
    %pc6 = llvm.mlir.constant(0.12761549651622772 : f32) : f32
    %pc7 = llvm.mlir.constant(-0.07634429633617401 : f32) : f32
    %p6 = llvm.intr.fma(%pc7, %f, %pc6) : (f32, f32, f32) -> f32
    %p5 = llvm.intr.fma(%p6, %f, %pc5) : (f32, f32, f32) -> f32
    %p4 = llvm.intr.fma(%p5, %f, %pc4) : (f32, f32, f32) -> f32
    %p3 = llvm.intr.fma(%p4, %f, %pc3) : (f32, f32, f32) -> f32
    %p2 = llvm.intr.fma(%p3, %f, %pc2) : (f32, f32, f32) -> f32
    %p1 = llvm.intr.fma(%p2, %f, %pc1) : (f32, f32, f32) -> f32
    %p0 = llvm.intr.fma(%p1, %f, %pc0) : (f32, f32, f32) -> f32
    %high = llvm.mlir.constant(1.4426950216293335 : f32) : f32
    %low = llvm.mlir.constant(1.925963033500011e-08 : f32) : f32
    %minus_half = llvm.mlir.constant(-0.5 : f32) : f32
    %square = llvm.fmul %f, %f : f32
    %cube = llvm.fmul %square, %f : f32
    %s0 = llvm.fmul %square, %minus_half : f32
    %s1 = llvm.intr.fma(%cube, %p0, %s0) : (f32, f32, f32) -> f32
    %t0 = llvm.fmul %f, %low : f32
    %t1 = llvm.intr.fma(%s1, %high, %t0) : (f32, f32, f32) -> f32
    %t2 = llvm.intr.fma(%f, %high, %t1) : (f32, f32, f32) -> f32
    %r0 = llvm.fadd %n, %t2 : f32

    %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
    %lowest = llvm.mlir.constant(0xFF800000 : f32) : f32
    %nan = llvm.mlir.constant(0x7FC00000 : f32) : f32
    %is_number = llvm.fcmp "olt" %x, %infinity : f32
    %r1 = llvm.select %is_number, %r0, %x : i1, f32
    %is_zero = llvm.fcmp "oeq" %x, %zero : f32
    %r2 = llvm.select %is_zero, %lowest, %r1 : i1, f32
    %is_negative = llvm.fcmp "olt" %x, %zero : f32
    %y = llvm.select %is_negative, %nan, %r2 : i1, f32
    llvm.return %y : f32
  }

  // The square root of x, rounded to nearest.
  llvm.func internal @__nv_sqrtf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // x^y. Relative error 2^-22: y log2 |x| is computed in f64, its whole part is the exponent, and 2^rest
  // has the error of ex2. log2 (1 + f) = s p(s^2) with s = f / (2 + f).
  llvm.func internal @__nv_powf(%x: f32, %y: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %a = llvm.intr.fabs(%x) : (f32) -> f32
    %wide = llvm.fpext %a : f32 to f64
    %root = llvm.mlir.constant(4604544269498187776 : i64) : i64
    %places = llvm.mlir.constant(52 : i64) : i64
    %bits = llvm.bitcast %wide : f64 to i64
    %above = llvm.sub %bits, %root : i64
    %k = llvm.ashr %above, %places : i64
    %power = llvm.shl %k, %places : i64
    %digits = llvm.sub %bits, %power : i64
    %m = llvm.bitcast %digits : i64 to f64
    %one64 = llvm.mlir.constant(1.0 : f64) : f64
    %f = llvm.fsub %m, %one64 : f64
    %sum = llvm.fadd %m, %one64 : f64
    %s = llvm.fdiv %f, %sum : f64
    %q = llvm.fmul %s, %s : f64
    %c0 = llvm.mlir.constant(2.885390081777935 : f64) : f64
    %c1 = llvm.mlir.constant(0.96179669392141 : f64) : f64
    %c2 = llvm.mlir.constant(0.5770780181010751 : f64) : f64
    %c3 = llvm.mlir.constant(0.41219830818199404 : f64) : f64
    %c4 = llvm.mlir.constant(0.3206208904250267 : f64) : f64
    %c5 = llvm.mlir.constant(0.26136941641565975 : f64) : f64
    %c6 = llvm.mlir.constant(0.24217151141968823 : f64) : f64
    %c7 = llvm.mlir.constant(0.025969960569723238 : f64) : f64
    %g6 = llvm.intr.fma(%c7, %q, %c6) : (f64, f64, f64) -> f64
    %g5 = llvm.intr.fma(%g6, %q, %c5) : (f64, f64, f64) -> f64
    %g4 = llvm.intr.fma(%g5, %q, %c4) : (f64, f64, f64) -> f64
    %g3 = llvm.intr.fma(%g4, %q, %c3) : (f64, f64, f64) -> f64
    %g2 = llvm.intr.fma(%g3, %q, %c2) : (f64, f64, f64) -> f64
    %g1 = llvm.intr.fma(%g2, %q, %c1) : (f64, f64, f64) -> f64
    %g0 = llvm.intr.fma(%g1, %q, %c0) : (f64, f64, f64) -> f64
    %e = llvm.sitofp %k : i64 to f64
    %l0 = llvm.intr.fma(%s, %g0, %e) : (f64, f64, f64) -> f64
    %zero64 = llvm.mlir.constant(0.0 : f64) : f64
    %infinity64 = llvm.mlir.constant(0x7FF0000000000000 : f64) : f64
    %lowest64 = llvm.mlir.constant(0xFFF0000000000000 : f64) : f64
    %of_zero = llvm.fcmp "oeq" %wide, %zero64 : f64
    %l1 = llvm.select %of_zero, %lowest64, %l0 : i1, f64
    %is_number = llvm.fcmp "olt" %wide, %infinity64 : f64
    %l = llvm.select %is_number, %l1, %wide : i1, f64
    %exponent = llvm.fpext %y : f32 to f64
    %t0 = llvm.fmul %exponent, %l : f64

    // Beyond these bounds the power is 0 or infinite; NaN stays.
    %top = llvm.mlir.constant(200.0 : f64) : f64
    %bottom = llvm.mlir.constant(-200.0 : f64) : f64
    %is_above = llvm.fcmp "ogt" %t0, %top : f64
    %t1 = llvm.select %is_above, %top, %t0 : i1, f64
    %is_below = llvm.fcmp "olt" %t1, %bottom : f64
    %t = llvm.select %is_below, %bottom, %t1 : i1, f64
    %n = llvm.intr.rint(%t) : (f64) -> f64
    %rest64 = llvm.fsub %t, %n : f64
    %rest = llvm.fptrunc %rest64 : f64 to f32
    %p = llvm.intr.exp2(%rest) : (f32) -> f32
    %whole_power = llvm.fptosi %n : f64 to i32
    %i1 = llvm.mlir.constant(1 : i32) : i32
    %bias = llvm.mlir.constant(127 : i32) : i32
    %shift = llvm.mlir.constant(23 : i32) : i32
    %n0 = llvm.ashr %whole_power, %i1 : i32
    %n1 = llvm.sub %whole_power, %n0 : i32
    %b0 = llvm.add %n0, %bias : i32
    %b1 = llvm.add %n1, %bias : i32
    %w0 = llvm.shl %b0, %shift : i32
    %w1 = llvm.shl %b1, %shift : i32
    %f0 = llvm.bitcast %w0 : i32 to f32
    %f1 = llvm.bitcast %w1 : i32 to f32
    %half_way = llvm.fmul %p, %f0 : f32
    %size = llvm.fmul %half_way, %f1 : f32

    // What IEEE 754 says of signs, zeros and infinities (section 9.2.1).
    %half = llvm.mlir.constant(0.5 : f32) : f32
    %halved = llvm.fmul %y, %half : f32
    %whole = llvm.intr.floor(%y) : (f32) -> f32
    %whole_half = llvm.intr.floor(%halved) : (f32) -> f32
    %is_whole = llvm.fcmp "oeq" %whole, %y : f32
    %has_rest = llvm.fcmp "one" %whole_half, %halved : f32
    %is_odd = llvm.and %is_whole, %has_rest : i1
    %with_sign = llvm.intr.copysign(%size, %x) : (f32, f32) -> f32
    %signed = llvm.select %is_odd, %with_sign, %size : i1, f32
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
    %nan = llvm.mlir.constant(0x7FC00000 : f32) : f32
    %is_negative = llvm.fcmp "olt" %x, %zero : f32
    %is_finite = llvm.fcmp "one" %a, %infinity : f32
    %is_broken = llvm.fcmp "one" %whole, %y : f32
    %no_root = llvm.and %is_negative, %is_finite : i1
    %is_nan = llvm.and %no_root, %is_broken : i1
    %real = llvm.select %is_nan, %nan, %signed : i1, f32
    %is_zeroth = llvm.fcmp "oeq" %y, %zero : f32
    %of_one = llvm.fcmp "oeq" %x, %one : f32
    %b = llvm.intr.fabs(%y) : (f32) -> f32
    %is_endless = llvm.fcmp "oeq" %b, %infinity : f32
    %of_unit = llvm.fcmp "oeq" %a, %one : f32
    %both = llvm.and %is_endless, %of_unit : i1
    %either = llvm.or %is_zeroth, %of_one : i1
    %is_one = llvm.or %either, %both : i1
    %r = llvm.select %is_one, %one, %real : i1, f32
    llvm.return %r : f32
  }
}
