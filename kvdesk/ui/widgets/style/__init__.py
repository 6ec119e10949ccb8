"""How the window looks: colours, fonts, icons, sizes, the style sheet."""
