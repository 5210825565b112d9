// --report: what each kernel costs, counted in the simulator.
// RUN: %legoc %examples/transpose.mlir --run --report --set T=32 | FileCheck %s
// CHECK: device{{ +}}sim (only it counts costs)
// CHECK: costs{{ +}}transpose_kernel  0 excess sectors, 0 excess wavefronts
// CHECK-NEXT: memory{{ +}}space{{ +}}requests{{ +}}requested{{ +}}moved{{ +}}least{{ +}}excess
// CHECK-NEXT: {{[^ ]+}}transpose.mlir:32:14  ld.global.b32  global{{ +}}32768{{ +}}4.0 MiB{{ +}}131072 sectors{{ +}}131072{{ +}}0{{$}}
// CHECK-NEXT: {{[^ ]+}}transpose.mlir:34:9   st.shared.b32  shared{{ +}}32768{{ +}}4.0 MiB{{ +}}32768 wavefronts{{ +}}32768{{ +}}0{{$}}
// CHECK-NEXT: {{[^ ]+}}transpose.mlir:40:14  ld.shared.b32  shared{{ +}}32768{{ +}}4.0 MiB{{ +}}32768 wavefronts{{ +}}32768{{ +}}0{{$}}
// CHECK-NEXT: {{[^ ]+}}transpose.mlir:42:9   st.global.b32  global{{ +}}32768{{ +}}4.0 MiB{{ +}}131072 sectors{{ +}}131072{{ +}}0{{$}}
// CHECK: instructions{{ +}}by warps{{ +}}by lanes{{ +}}a thread
// CHECK: global memory{{ +}}65536{{ +}}2097152{{ +}}8.00
// CHECK: shared memory{{ +}}65536{{ +}}2097152{{ +}}8.00
// CHECK: synchronisation{{ +}}8192{{ +}}262144{{ +}}1.00
// CHECK: check{{ +}}equal to NumPy's transpose

// Without the swizzle, a column of the tile lies in one bank: 32 ways, where the tile is read.
// RUN: sed -e 's/GenP(.T, T., swizzle)/Row(T, T)/' -e s/1024/64/g %examples/transpose.mlir > %t.row.mlir
// RUN: %legoc %t.row.mlir --run --report --device=sim | FileCheck %s --check-prefix=ROW
// ROW: device{{ +}}sim{{$}}
// ROW: costs{{ +}}transpose_kernel  0 excess sectors, 3968 excess wavefronts
// ROW: {{[^ ]+}}row.mlir:40:14  ld.shared.b32  shared{{ +}}128{{ +}}16.0 KiB{{ +}}4096 wavefronts{{ +}}128{{ +}}3968 (32.0×)
// ROW-NEXT: row.mlir:32:14
// ROW: check{{ +}}equal

// An output in columns is written in columns: a sector for every element. The locations are in the
// bundle too.
// RUN: sed -e '/^#B/s/Row/Col/' -e s/1024/64/g %examples/transpose.mlir > %t.col.mlir
// RUN: %legoc %t.col.mlir --emit=bundle -o %t.lego
// RUN: %legoc %t.lego --run --report | FileCheck %s --check-prefix=COL
// COL: costs{{ +}}transpose_kernel  3584 excess sectors, 0 excess wavefronts
// COL: {{[^ ]+}}col.mlir:42:9   st.global.b32  global{{ +}}128{{ +}}16.0 KiB{{ +}}4096 sectors{{ +}}512{{ +}}3584 (8.0×)
// COL-NEXT: col.mlir:32:14

// RUN: not %legoc %t.row.mlir --report 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: --report needs --run
// RUN: not %legoc %t.row.mlir --run --report --device=cuda 2>&1 | FileCheck %s --check-prefix=CUDA
// CUDA: error: --report counts in the simulator: leave out --device=cuda
