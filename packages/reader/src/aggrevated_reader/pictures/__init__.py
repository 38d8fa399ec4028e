"""From pictures and pen strokes to a page: ink told from paper, joined to symbols, put in reading order."""
