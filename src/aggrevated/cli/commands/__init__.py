"""Commands: one module each, with the name in `command`; slow imports happen when it runs."""
