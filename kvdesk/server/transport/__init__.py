"""What a request passes before it is read: socket, limits of HTTP, the gate, a place."""
