// What operations of the math dialect call in a kernel. The passes name NVIDIA's libdevice; these
// take its place, as it is no part of a Python installation.
module {
  // 2^x. Relative error 2^-22; a result below 2^-126 is 0 (PTX ISA, "ex2"). To keep those, LLVM would
  // scale every argument and every result.
  llvm.func internal @__nv_exp2f(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // tanh x. Relative error 3e-7: up to 0.6 the odd polynomial of degree 11 that fits best, above
  // that 1 - 2 / (e^2x + 1), which is 1 where the exponential overflows.
  llvm.func internal @__nv_tanhf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %c0 = llvm.mlir.constant(-0.33333331 : f32) : f32
    %c1 = llvm.mlir.constant(0.13332924 : f32) : f32
    %c2 = llvm.mlir.constant(-0.053875137 : f32) : f32
    %c3 = llvm.mlir.constant(0.021116214 : f32) : f32
    %c4 = llvm.mlir.constant(-0.0062763877 : f32) : f32
    %s = llvm.fmul %x, %x : f32
    %p3 = llvm.intr.fma(%c4, %s, %c3) : (f32, f32, f32) -> f32
    %p2 = llvm.intr.fma(%p3, %s, %c2) : (f32, f32, f32) -> f32
    %p1 = llvm.intr.fma(%p2, %s, %c1) : (f32, f32, f32) -> f32
    %p0 = llvm.intr.fma(%p1, %s, %c0) : (f32, f32, f32) -> f32
    %cube = llvm.fmul %x, %s : f32
    %near = llvm.intr.fma(%cube, %p0, %x) : (f32, f32, f32) -> f32

    %one = llvm.mlir.constant(1.0 : f32) : f32
    %minus_two = llvm.mlir.constant(-2.0 : f32) : f32
    %log = llvm.mlir.constant(2.885390081777927 : f32) : f32
    %a = llvm.intr.fabs(%x) : (f32) -> f32
    %t = llvm.fmul %a, %log : f32
    %e = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%t) : (f32) -> f32
    %d = llvm.fadd %e, %one : f32
    %q = llvm.fdiv %minus_two, %d {fastmathFlags = #llvm.fastmath<arcp, afn>} : f32
    %r = llvm.fadd %q, %one : f32
    %far = llvm.intr.copysign(%r, %x) : (f32, f32) -> f32

    %bound = llvm.mlir.constant(0.6 : f32) : f32
    %is_near = llvm.fcmp "olt" %a, %bound : f32
    %y = llvm.select %is_near, %near, %far : i1, f32
    llvm.return %y : f32
  }

  // e^x as 2^(x log2 e). Relative error 2^-22 + |x| 2^-24 (PTX ISA, "ex2").
  llvm.func internal @__nv_expf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %log2e = llvm.mlir.constant(1.4426950216293335 : f32) : f32
    %t = llvm.fmul %x, %log2e : f32
    %y = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%t) : (f32) -> f32
    llvm.return %y : f32
  }

  // log2 x. Absolute error 2^-22 for x in (0.5, 2), relative error 2^-22 elsewhere (PTX ISA, "lg2").
  llvm.func internal @__nv_log2f(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // log x as log2 x log 2, with the errors of log2.
  llvm.func internal @__nv_logf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %ln2 = llvm.mlir.constant(0.6931471824645996 : f32) : f32
    %l = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%x) : (f32) -> f32
    %y = llvm.fmul %l, %ln2 : f32
    llvm.return %y : f32
  }

  // The square root of x. Relative error 2^-23 (PTX ISA, "sqrt").
  llvm.func internal @__nv_sqrtf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // 1 / sqrt(x). Relative error 2^-22.9 (PTX ISA, "rsqrt").
  llvm.func internal @__nv_rsqrtf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // The sine of x. Absolute error 1e-7 for |x| < 100,000: x less the nearest multiple of pi/2, which three
  // terms hold, then polynomials, of degree 7 for the sine and of degree 8 for the cosine.
  llvm.func internal @__nv_sinf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %per = llvm.mlir.constant(0.6366197466850281 : f32) : f32
    %h0 = llvm.mlir.constant(-1.5707963705062866 : f32) : f32
    %h1 = llvm.mlir.constant(4.371138828673793e-08 : f32) : f32
    %h2 = llvm.mlir.constant(1.7151245100058819e-15 : f32) : f32
    %t = llvm.fmul %x, %per : f32
    %n = llvm.intr.rint(%t) : (f32) -> f32
    %r0 = llvm.intr.fma(%n, %h0, %x) : (f32, f32, f32) -> f32
    %r1 = llvm.intr.fma(%n, %h1, %r0) : (f32, f32, f32) -> f32
    %r = llvm.intr.fma(%n, %h2, %r1) : (f32, f32, f32) -> f32
    %s = llvm.fmul %r, %r : f32

    %pc0 = llvm.mlir.constant(-0.16666653752326965 : f32) : f32
    %pc1 = llvm.mlir.constant(0.008332131430506706 : f32) : f32
    %pc2 = llvm.mlir.constant(-0.00019510870333760977 : f32) : f32
    %p1 = llvm.intr.fma(%pc2, %s, %pc1) : (f32, f32, f32) -> f32
    %p0 = llvm.intr.fma(%p1, %s, %pc0) : (f32, f32, f32) -> f32
    %cube = llvm.fmul %r, %s : f32
    %sine = llvm.intr.fma(%cube, %p0, %r) : (f32, f32, f32) -> f32

    %qc0 = llvm.mlir.constant(0.04166664555668831 : f32) : f32
    %qc1 = llvm.mlir.constant(-0.0013887305976822972 : f32) : f32
    %qc2 = llvm.mlir.constant(2.4431239580735564e-05 : f32) : f32
    %q1 = llvm.intr.fma(%qc2, %s, %qc1) : (f32, f32, f32) -> f32
    %q0 = llvm.intr.fma(%q1, %s, %qc0) : (f32, f32, f32) -> f32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %minus_half = llvm.mlir.constant(-0.5 : f32) : f32
    %square = llvm.fmul %s, %s : f32
    %near = llvm.intr.fma(%s, %minus_half, %one) : (f32, f32, f32) -> f32
    %cosine = llvm.intr.fma(%square, %q0, %near) : (f32, f32, f32) -> f32

    %zero = llvm.mlir.constant(0 : i32) : i32
    %i1 = llvm.mlir.constant(1 : i32) : i32
    %i2 = llvm.mlir.constant(2 : i32) : i32
    %shift = llvm.mlir.constant(0 : i32) : i32
    %k = llvm.fptosi %n : f32 to i32
    %quadrant = llvm.add %k, %shift : i32
    %odd = llvm.and %quadrant, %i1 : i32
    %is_odd = llvm.icmp "ne" %odd, %zero : i32
    %size = llvm.select %is_odd, %cosine, %sine : i1, f32
    %half = llvm.and %quadrant, %i2 : i32
    %is_negative = llvm.icmp "ne" %half, %zero : i32
    %minus = llvm.fneg %size : f32
    %y = llvm.select %is_negative, %minus, %size : i1, f32
    llvm.return %y : f32
  }

  // The cosine of x. Absolute error 1e-7 for |x| < 100,000: x less the nearest multiple of pi/2, which three
  // terms hold, then polynomials, of degree 7 for the sine and of degree 8 for the cosine.
  llvm.func internal @__nv_cosf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %per = llvm.mlir.constant(0.6366197466850281 : f32) : f32
    %h0 = llvm.mlir.constant(-1.5707963705062866 : f32) : f32
    %h1 = llvm.mlir.constant(4.371138828673793e-08 : f32) : f32
    %h2 = llvm.mlir.constant(1.7151245100058819e-15 : f32) : f32
    %t = llvm.fmul %x, %per : f32
    %n = llvm.intr.rint(%t) : (f32) -> f32
    %r0 = llvm.intr.fma(%n, %h0, %x) : (f32, f32, f32) -> f32
    %r1 = llvm.intr.fma(%n, %h1, %r0) : (f32, f32, f32) -> f32
    %r = llvm.intr.fma(%n, %h2, %r1) : (f32, f32, f32) -> f32
    %s = llvm.fmul %r, %r : f32

    %pc0 = llvm.mlir.constant(-0.16666653752326965 : f32) : f32
    %pc1 = llvm.mlir.constant(0.008332131430506706 : f32) : f32
    %pc2 = llvm.mlir.constant(-0.00019510870333760977 : f32) : f32
    %p1 = llvm.intr.fma(%pc2, %s, %pc1) : (f32, f32, f32) -> f32
    %p0 = llvm.intr.fma(%p1, %s, %pc0) : (f32, f32, f32) -> f32
    %cube = llvm.fmul %r, %s : f32
    %sine = llvm.intr.fma(%cube, %p0, %r) : (f32, f32, f32) -> f32

    %qc0 = llvm.mlir.constant(0.04166664555668831 : f32) : f32
    %qc1 = llvm.mlir.constant(-0.0013887305976822972 : f32) : f32
    %qc2 = llvm.mlir.constant(2.4431239580735564e-05 : f32) : f32
    %q1 = llvm.intr.fma(%qc2, %s, %qc1) : (f32, f32, f32) -> f32
    %q0 = llvm.intr.fma(%q1, %s, %qc0) : (f32, f32, f32) -> f32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %minus_half = llvm.mlir.constant(-0.5 : f32) : f32
    %square = llvm.fmul %s, %s : f32
    %near = llvm.intr.fma(%s, %minus_half, %one) : (f32, f32, f32) -> f32
    %cosine = llvm.intr.fma(%square, %q0, %near) : (f32, f32, f32) -> f32

    %zero = llvm.mlir.constant(0 : i32) : i32
    %i1 = llvm.mlir.constant(1 : i32) : i32
    %i2 = llvm.mlir.constant(2 : i32) : i32
    %shift = llvm.mlir.constant(1 : i32) : i32
    %k = llvm.fptosi %n : f32 to i32
    %quadrant = llvm.add %k, %shift : i32
    %odd = llvm.and %quadrant, %i1 : i32
    %is_odd = llvm.icmp "ne" %odd, %zero : i32
    %size = llvm.select %is_odd, %cosine, %sine : i1, f32
    %half = llvm.and %quadrant, %i2 : i32
    %is_negative = llvm.icmp "ne" %half, %zero : i32
    %minus = llvm.fneg %size : f32
    %y = llvm.select %is_negative, %minus, %size : i1, f32
    llvm.return %y : f32
  }

  // The error function of x. Relative error 2e-7: up to 1 the odd polynomial of degree 13 that fits best,
  // above that 1 - 2^p(|x|) with a polynomial p of degree 7, which fits log2(1 - erf) up to 4.
  llvm.func internal @__nv_erff(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %a = llvm.intr.fabs(%x) : (f32) -> f32
    %s = llvm.fmul %x, %x : f32
    %pc0 = llvm.mlir.constant(0.12837916612625122 : f32) : f32
    %pc1 = llvm.mlir.constant(-0.3761262595653534 : f32) : f32
    %pc2 = llvm.mlir.constant(0.1128358542919159 : f32) : f32
    %pc3 = llvm.mlir.constant(-0.026853810995817184 : f32) : f32
    %pc4 = llvm.mlir.constant(0.005188327748328447 : f32) : f32
    %pc5 = llvm.mlir.constant(-0.0008010192541405559 : f32) : f32
    %pc6 = llvm.mlir.constant(7.853857823647559e-05 : f32) : f32
    %p5 = llvm.intr.fma(%pc6, %s, %pc5) : (f32, f32, f32) -> f32
    %p4 = llvm.intr.fma(%p5, %s, %pc4) : (f32, f32, f32) -> f32
    %p3 = llvm.intr.fma(%p4, %s, %pc3) : (f32, f32, f32) -> f32
    %p2 = llvm.intr.fma(%p3, %s, %pc2) : (f32, f32, f32) -> f32
    %p1 = llvm.intr.fma(%p2, %s, %pc1) : (f32, f32, f32) -> f32
    %p0 = llvm.intr.fma(%p1, %s, %pc0) : (f32, f32, f32) -> f32
    %near = llvm.intr.fma(%x, %p0, %x) : (f32, f32, f32) -> f32

    %four = llvm.mlir.constant(4.0 : f32) : f32
    %is_beyond = llvm.fcmp "ogt" %a, %four : f32
    %b = llvm.select %is_beyond, %four, %a : i1, f32
    %qc0 = llvm.mlir.constant(0.0002719015465117991 : f32) : f32
    %qc1 = llvm.mlir.constant(-1.6296398639678955 : f32) : f32
    %qc2 = llvm.mlir.constant(-0.9135381579399109 : f32) : f32
    %qc3 = llvm.mlir.constant(-0.156420037150383 : f32) : f32
    %qc4 = llvm.mlir.constant(0.036370836198329926 : f32) : f32
    %qc5 = llvm.mlir.constant(-0.006066944915801287 : f32) : f32
    %qc6 = llvm.mlir.constant(0.0006369107868522406 : f32) : f32
    %qc7 = llvm.mlir.constant(-3.1303075957112014e-05 : f32) : f32
    %q6 = llvm.intr.fma(%qc7, %b, %qc6) : (f32, f32, f32) -> f32
    %q5 = llvm.intr.fma(%q6, %b, %qc5) : (f32, f32, f32) -> f32
    %q4 = llvm.intr.fma(%q5, %b, %qc4) : (f32, f32, f32) -> f32
    %q3 = llvm.intr.fma(%q4, %b, %qc3) : (f32, f32, f32) -> f32
    %q2 = llvm.intr.fma(%q3, %b, %qc2) : (f32, f32, f32) -> f32
    %q1 = llvm.intr.fma(%q2, %b, %qc1) : (f32, f32, f32) -> f32
    %q0 = llvm.intr.fma(%q1, %b, %qc0) : (f32, f32, f32) -> f32
    %e = llvm.intr.exp2(%q0) : (f32) -> f32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %d = llvm.fsub %one, %e : f32
    %far = llvm.intr.copysign(%d, %x) : (f32, f32) -> f32

    %is_near = llvm.fcmp "olt" %a, %one : f32
    %y = llvm.select %is_near, %near, %far : i1, f32
    llvm.return %y : f32
  }

  // x^y as 2^(y log2 |x|), with the sign of x where y is odd. Relative error 2^-22 (1 + |y log2 x|),
  // and |y| 2^-22 for x in (0.5, 2).
  llvm.func internal @__nv_powf(%x: f32, %y: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %a = llvm.intr.fabs(%x) : (f32) -> f32
    %l = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%a) : (f32) -> f32
    %t = llvm.fmul %y, %l : f32
    %size = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%t) : (f32) -> f32

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

  // |x|.
  llvm.func internal @__nv_fabsf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.fabs(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // |x|.
  llvm.func internal @__nv_fabs(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.fabs(%x) : (f64) -> f64
    llvm.return %y : f64
  }

  // The greatest whole number that is not above x.
  llvm.func internal @__nv_floorf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.floor(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // The greatest whole number that is not above x.
  llvm.func internal @__nv_floor(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.floor(%x) : (f64) -> f64
    llvm.return %y : f64
  }

  // The smallest whole number that is not below x.
  llvm.func internal @__nv_ceilf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.ceil(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // The smallest whole number that is not below x.
  llvm.func internal @__nv_ceil(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.ceil(%x) : (f64) -> f64
    llvm.return %y : f64
  }

  // x without its fraction.
  llvm.func internal @__nv_truncf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.trunc(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // x without its fraction.
  llvm.func internal @__nv_trunc(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.trunc(%x) : (f64) -> f64
    llvm.return %y : f64
  }

  // The whole number nearest to x, of two the even one.
  llvm.func internal @__nv_rintf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.rint(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // The whole number nearest to x, of two the even one.
  llvm.func internal @__nv_rint(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.rint(%x) : (f64) -> f64
    llvm.return %y : f64
  }

  // The whole number nearest to x, of two the one farther from 0.
  llvm.func internal @__nv_roundf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.round(%x) : (f32) -> f32
    llvm.return %y : f32
  }

  // x y + z, rounded once.
  llvm.func internal @__nv_fmaf(%x: f32, %y: f32, %z: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %r = llvm.intr.fma(%x, %y, %z) : (f32, f32, f32) -> f32
    llvm.return %r : f32
  }

  // x y + z, rounded once.
  llvm.func internal @__nv_fma(%x: f64, %y: f64, %z: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %r = llvm.intr.fma(%x, %y, %z) : (f64, f64, f64) -> f64
    llvm.return %r : f64
  }

  // The square root of an f64, rounded to nearest.
  llvm.func internal @__nv_sqrt(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.call_intrinsic "llvm.nvvm.sqrt.rn.d"(%x) : (f64) -> f64
    llvm.return %y : f64
  }
}
