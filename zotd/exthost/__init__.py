"""Extensions: finding them, keeping their processes alive, and everything that crosses to them and back."""
