// --sim-order: when the simulator does asynchronous work. A kernel that waits for all of its own is
// right in every order.
// RUN: sed -e s/1024/64/g %examples/transpose.mlir > %t.mlir
// RUN: %legoc %t.mlir --run --sim-order=early | FileCheck %s
// RUN: %legoc %t.mlir --run --sim-order=random:7 | FileCheck %s
// CHECK: device{{ +}}sim (only it has orders)
// CHECK: check{{ +}}equal

// RUN: not %legoc %t.mlir --run --sim-order=soon 2>&1 | FileCheck %s --check-prefix=SOON
// SOON: error: the simulator has no order 'soon'
// SOON-NEXT: hint: orders: late, early, random, random:SEED

// RUN: not %legoc %t.mlir --run --device=cuda --sim-order=late 2>&1 | FileCheck %s --check-prefix=CUDA
// CUDA: --sim-order applies to the simulator: leave out --device=cuda
// RUN: not %legoc %t.mlir --sim-order=late 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: --sim-order needs --run
