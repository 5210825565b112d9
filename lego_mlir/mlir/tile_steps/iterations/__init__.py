"""Steps that let a part of a loop's body come one iteration late, beside the next iteration."""
