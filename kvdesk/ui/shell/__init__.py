"""The main window and what is around its pages."""
