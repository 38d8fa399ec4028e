"""What people look at in a browser: one small server on the loopback address, for whoever has its token.

`serving` binds, opens and ends; `guard` decides who is answered; `answers` reads bodies and tells mistakes. A page is a
module of routes and files in `static/` of the same name: `draw` to write algebra on, `board` to watch runs, `tree` to
play with the paper's tree. Whatever a page shows, a command prints, too.
"""
