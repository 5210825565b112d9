"""Whether threads would lose updates of the elements of a tensor."""
