"""One module per model API, a catalog of vendors and models that is data, and `connect`, which opens a model."""
