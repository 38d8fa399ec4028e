"""What is on a page: its symbols, their ink and its tree; generated, or read from InkML."""
