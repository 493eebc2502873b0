"""What extensions add to sessions: tools, guards, slash commands, panels."""
