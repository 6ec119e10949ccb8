"""The headless commands, one a file. Each has `main(argv) -> exit code`."""
