"""Dialogs: questions, lists to choose from and panels of extensions. An open dialog gets the keys first."""
