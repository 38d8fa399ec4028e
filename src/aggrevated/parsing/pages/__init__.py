"""Pages of handwritten algebra, with symbols, ink and dependency trees: generated, or read from InkML."""
