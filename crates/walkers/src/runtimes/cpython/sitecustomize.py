# Loaded by Python at its start under `weir run`: makes standard output line-buffered, or fully buffered on a terminal too.
import io
import os
import sys


def _replace_stdout(line_buffering):
    # Python before 3.7 cannot change a text stream. Nothing else may refer to the old one, so this comes first.
    old = sys.stdout
    is_text = type(old) is io.TextIOWrapper and isinstance(old.buffer, io.BufferedWriter)
    if is_text and old.line_buffering != line_buffering:
        encoding, errors = old.encoding, old.errors
        new = io.TextIOWrapper(old.detach(), encoding, errors, "\n", line_buffering)
        new.mode = "w"
        sys.stdout = sys.__stdout__ = new


def _set_buffering():
    mode = os.environ.get("WEIR_HOOK")
    line_buffering = bool(mode) and not mode.startswith("full")
    if mode and not hasattr(io.TextIOWrapper, "reconfigure"):
        _replace_stdout(line_buffering)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    # Import the sitecustomize that Python would have found without this one.
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
    if "sitecustomize" not in sys.modules:
        sys.modules["sitecustomize"] = own
    if mode and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=line_buffering)


_set_buffering()
