"""Small widgets, the theme, fonts and icons."""
