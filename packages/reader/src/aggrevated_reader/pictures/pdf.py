"""Rendering of the first page of a PDF by PDFium, in a process with limits on time and memory."""

import io
import subprocess
import sys

from PIL import Image

from aggrevated.core.errors import DataError, UsageError

SECONDS = 10  # of wall-clock time and of CPU time
MEMORY = 1 << 30  # bytes of address space beyond the interpreter's

# PDFium is built without JavaScript. The child prints "width height " and the gray bytes.
CHILD = f"""
import sys
try:
    import pypdfium2
except ImportError:
    sys.exit(3)
try:
    import resource
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + {MEMORY},) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS},) * 2)
except (ImportError, OSError, ValueError):
    pass
page = pypdfium2.PdfDocument(sys.stdin.buffer.read())[0]
longest = int(sys.argv[1])
width, height = page.get_size()
scale = min(longest / max(width, height, 1), 4)
grey = page.render(scale=scale, grayscale=True).to_pil().convert("L")
sys.stdout.buffer.write(b"%d %d " % grey.size + grey.tobytes())
"""


def render_first_page(data: bytes, longest: int) -> Image.Image:
    """Return the first page in grayscale, its longer side at most `longest` pixels.

    Raises:
        DataError: The page cannot be rendered, or not within the limits.
        UsageError: pypdfium2 is not installed.
    """
    try:
        done = subprocess.run(  # -P: import nothing from the current folder, which is untrusted
            [sys.executable, "-P", "-c", CHILD, str(longest)],
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DataError(f"its first page takes more than {SECONDS} seconds to draw; save it as a picture") from error
    if done.returncode == 3:
        raise UsageError("reading PDF needs pypdfium2: pip install './packages/reader[pdf]'; or save the page as PNG")
    if done.returncode:
        raise DataError("its first page cannot be drawn: it is damaged, locked or too large; save it as a picture")
    width, height, pixels = done.stdout.split(b" ", 2)
    return Image.open(io.BytesIO(b"P5 %d %d 255\n" % (int(width), int(height)) + pixels)).copy()
