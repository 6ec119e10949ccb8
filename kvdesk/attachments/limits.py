"""What the child process that reads a file may take. Known to it and to its parent, which imports no more of it."""

ADDRESS_SPACE = 1_500_000_000
"""Bytes: Python and the libraries reserve half of it and hardly use it."""
MEMORY = 1_000_000_000
"""Bytes of real memory, looked at while the child works: not every system limits the address space."""
MOST_OUTPUT = 20_000_000
"""Bytes."""
CPU_S = 30
TIME_S = 20.0
READ_S = 8.0
"""Of a long document as much is read as there is time for."""
