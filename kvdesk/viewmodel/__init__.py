"""The data of the window, without Qt: its state, measurements, and the texts and numbers made of them."""
