"""What a recording shows, in a document of bounded size that a person can send and a program can act on."""
