"""One file per command; each says in `command` which it is, and imports nothing heavy before it is run."""
