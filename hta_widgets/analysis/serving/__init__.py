"""What a server's time is spent on: its steps, the time between them, and its rates per phase."""
