"""Conversion of pictures and pen strokes to pages: separate ink from paper, group symbols, and sort them."""
