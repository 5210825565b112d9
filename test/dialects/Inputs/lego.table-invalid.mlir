func.func @negative(%i: index) -> index {
  %0 = "lego.table"(%i) {values = array<i64: -1>} : (index) -> index
  return %0 : index
}
