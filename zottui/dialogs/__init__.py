"""What takes the keys for a while: questions, lists to choose from, panels of extensions."""
