"""What people look at in a browser: one small server on the loopback address, for whoever has its token.

`serving` binds, opens and ends; `guard` decides who is answered; `answers` reads bodies and tells mistakes; a page is a
folder of files in `static/` and a list of routes: `drawing` to write algebra on, `board` to watch runs. Whatever a page
shows, a command prints, too.
"""
