// The steps of our own that a schedule is made of: transform operations on tiles and layouts.
//
// A schedule's named sequence @__transform_tiles gets the module while tiles are still read and
// written through layouts; these operations are for that. What each does stands in its Python
// module, lego_mlir/mlir/transforms/NAME.py, with the IR before and after.
//
// IRDL names have no dots, so the namespace is transform_lego.

irdl.dialect @transform_lego {
  // The value of a parameter of the schedule: what the payload's `lego.parameters` or the command
  // line says, else the default.  {name = "stages", default = 4 : i64}
  irdl.operation @parameter {
    %param = irdl.base "!transform.param"
    %name = irdl.base "#builtin.string"
    %default = irdl.base "#builtin.integer"
    irdl.results(value: %param)
    irdl.attributes {"name" = %name, "default" = %default}
  }

  // Keeps the text of the payload as it is now; `legoc --keep=DIR` puts one after every step.
  irdl.operation @keep {
    %op = irdl.base "!transform.any_op"
    %name = irdl.base "#builtin.string"
    irdl.operands(target: %op)
    irdl.attributes {"name" = %name}
  }
}
