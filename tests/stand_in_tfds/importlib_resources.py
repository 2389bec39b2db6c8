"""tensorflow-datasets needs it; here it only has to be there."""
