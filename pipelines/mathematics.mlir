// What operations of the math dialect call in a kernel. The passes name NVIDIA's libdevice; these
// take its place, as it is no part of a Python installation.
module {
  // 2^x. Relative error 2^-22 (PTX ISA, "ex2").
  llvm.func internal @__nv_exp2f(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %y = llvm.intr.exp2(%x) : (f32) -> f32
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
    %e = llvm.intr.exp2(%t) : (f32) -> f32
    %d = llvm.fadd %e, %one : f32
    %q = llvm.fdiv %minus_two, %d {fastmathFlags = #llvm.fastmath<arcp, afn>} : f32
    %r = llvm.fadd %q, %one : f32
    %far = llvm.intr.copysign(%r, %x) : (f32, f32) -> f32

    %bound = llvm.mlir.constant(0.6 : f32) : f32
    %is_near = llvm.fcmp "olt" %a, %bound : f32
    %y = llvm.select %is_near, %near, %far : i1, f32
    llvm.return %y : f32
  }
}
