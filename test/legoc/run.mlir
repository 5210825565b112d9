// --run: the host function is executed, on given or random data; what was done is printed.
// RUN: sed -e s/1024/64/g %examples/transpose.mlir > %t.mlir

// Stages compose: what one legoc prints, another one runs.
// RUN: %legoc %t.mlir --emit=index | %legoc - --run --device=sim | FileCheck %s --check-prefix=PIPE
// PIPE: device{{ +}}sim
// PIPE-NEXT: kernel{{ +}}transpose_kernel{{ +}}grid 4×1×1{{ +}}block 256×1×1
// PIPE-NEXT: tensor{{ +}}arg0{{ +}}f32 64×64{{ +}}random, seed 0
// PIPE-NEXT: tensor{{ +}}arg1{{ +}}f32 64×64{{ +}}written
// PIPE-NEXT: check{{ +}}equal to NumPy's transpose: arg1: all 4096 elements equal

// Outputs are saved; one of them is the next input.
// RUN: rm -rf %t.out %t.back
// RUN: %legoc %t.mlir --run --device=sim --seed=7 --save %t.out | FileCheck %s --check-prefix=SAVE
// RUN: %legoc %t.mlir %t.out/b.npy --run --device=sim --save %t.back | FileCheck %s --check-prefix=GIVEN
// RUN: %legoc %t.mlir %t.back/b.npy --run --device=sim --save %t.out/again
// RUN: cmp %t.out/b.npy %t.out/again/b.npy
// SAVE: tensor{{ +}}a{{ +}}f32 64×64{{ +}}random, seed 7
// SAVE: saved{{ +}}{{.*}}run.mlir.tmp.out{{.}}b.npy
// SAVE-NEXT: check{{ +}}equal
// GIVEN: tensor{{ +}}a{{ +}}f32 64×64{{ +}}{{.*}}run.mlir.tmp.out/b.npy
// GIVEN: check{{ +}}equal

// A module without a reference is run and not compared.
// RUN: sed -e 's/lego.reference = "transpose", //' %t.mlir > %t.none.mlir
// RUN: %legoc %t.none.mlir --run --device=sim | FileCheck %s --check-prefix=NONE
// NONE: check{{ +}}none: the module names no lego.reference

// A wrong result is printed with its index, and is an error.
// RUN: sed -e 's/"transpose"/"copy"/' %t.mlir > %t.wrong.mlir
// RUN: not %legoc %t.wrong.mlir --run --device=sim | FileCheck %s --check-prefix=WRONG
// WRONG: check{{ +}}DIFFERENT from NumPy's copy: b: {{[0-9]+}} of 4096 elements differ, the first at [0, 1]: expected
