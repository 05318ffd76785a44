"""What a change would save: a recording's dependencies, and its replay under an edit."""
