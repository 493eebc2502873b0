"""Ten small tasks for an agent, each with a check: how many a model solves, in how many steps, for how much."""
