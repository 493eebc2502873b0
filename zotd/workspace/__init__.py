"""What a working directory contributes to its sessions: environment, instructions, files."""
