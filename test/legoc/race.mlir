// A data race is an error at the line that was compiled, with its caret, and names both accesses.
// RUN: sed -e /gpu.barrier/d -e s/1024/64/g %examples/transpose.mlir > %t.mlir
// RUN: not %legoc %t.mlir --run --device=sim 2>&1 | FileCheck %s
// RUN: not %legoc %t.mlir --run --device=sim --sim-order=early 2>&1 | FileCheck %s
// RUN: not %legoc - --run --device=sim < %t.mlir 2>&1 | FileCheck %s
// CHECK: {{^(.*.mlir|<stdin>)}}:39:14: error: data race: ld.shared.b32 reads shared memory at {{.+}}, which st.shared.b32 (line {{[0-9]+}}, from {{.+}}:34:9) writes in thread ({{.+}}) of CTA ({{.+}}); nothing orders the two, in thread ({{.+}}) of CTA ({{.+}}); line {{[0-9]+}} of the PTX: ld.shared.b32
// CHECK-NEXT: {{^ +}}%v = "lego.load"(%tile, %col, %i) {layout = #tile}
// CHECK-NEXT: {{^ {15}\^$}}
// CHECK-NEXT: hint: put a barrier between the two: bar.sync (gpu.barrier), or an mbarrier

// Who has the PTX alone, in a bundle, sees the location there, and its source.
// RUN: %legoc %t.mlir --emit=bundle -o %t.lego
// RUN: mv %t.mlir %t.moved
// RUN: not %legoc %t.lego --run --device=sim 2>&1 | FileCheck %s --check-prefix=BUNDLE
// BUNDLE: {{^}}<ptx>:{{[0-9]+:[0-9]+}}: error: data race: ld.shared.b32 reads shared memory at {{.+}}; compiled from {{.+}}.mlir:39:14
// BUNDLE-NEXT: ld.shared.b32
// BUNDLE-NEXT: {{^ +\^$}}
