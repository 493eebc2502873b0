"""The live area, piece by piece: each function turns the state into rows of text, and does nothing else."""
