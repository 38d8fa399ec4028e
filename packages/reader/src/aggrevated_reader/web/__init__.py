"""Small web server on the loopback address, which answers only requests that have its token.

`server` binds the port, opens the browser and ends the server; `request_guard` decides which requests are
answered; `requests` reads bodies and reports errors. A page is a module of routes with the files of its name
in `static/`: `draw_page` serves the page to write algebra on. Commands print everything that a page shows.
"""
