"""content.py: compares the pages with the header. Each check yields labels and lists of problems."""
import re

from pages import ROOT

MEMBERS = {  # structure: the page that explains its members
    "weir_options": "weir_open.3",
    "weir_callbacks": "weir_open.3",
    "weir_stats": "weir_error.3",
    "weir_recovered": "weir_recover.3",
    "weir_head": "libweir.7",
}


def is_of_calls(page):
    return page.name.endswith(".3")


def check_functions(header, pages):
    """Checks that one page documents each function, with the header's prototype."""
    documented = {}
    for page in pages:
        for name in page.names():
            documented.setdefault(name, []).append(page)
    for function, prototype in sorted(header.functions.items()):
        where = documented.get(function, [])
        problems = [] if len(where) == 1 else [f"named by {[page.name for page in where]}, not by one page"]
        for page in where:
            in_page = page.prototypes().get(function)
            if in_page != prototype:
                problems.append(f"{page.name} has {in_page}, the header {prototype}")
        yield function, problems
    yield "names missing in the header", [f"{page.name} names {name}" for name, where in documented.items()
                                            for page in where
                                            if is_of_calls(page) and name not in header.functions]


def check_links(pages, links):
    """Checks that each function has a link page of its name, because man(1) searches for files."""
    expected = {f"{name}.3": f"man3/{page.name}" for page in pages for name in page.names()
              if is_of_calls(page) and f"{name}.3" != page.name}
    targets = {page.name: page.target for page in links}
    yield "link pages", [f"{name} links to {targets.get(name)}, not to {expected.get(name)}"
                         for name in sorted(set(expected) | set(targets))
                         if expected.get(name) != targets.get(name)]
    names = {page.name for page in pages + links}
    yield "references", [f"{page.name}: there is no page {name}({section})" for page in pages
                         for name, section in re.findall(r"\bXr (\S*weir\S*) (\d)", page.text)
                         if f"{name}.{section}" not in names]


def check_words(header, pages):
    """Checks that the pages contain all members and constants, and no constant that the header lacks."""
    text = {page.name: page.text for page in pages}
    for structure, page in MEMBERS.items():
        yield f"members of {structure}", [f"{member} is not in {page}" for member in header.members[structure]
                                          if not re.search(rf"\b{member}\b", text.get(page, ""))]
    everything = "\n".join(text.values())
    yield "constants of the header", [f"{name} is in no page" for name in sorted(header.constants)
                                      if not re.search(rf"\b{name}\b", everything)]
    known = header.constants | other_constants()
    yield "constants of the pages", [f"{page.name}: {name} is not in the header" for page in pages
                                     for name in sorted(set(re.findall(r"\bWEIR_[A-Z_]+\b", page.text)))
                                     if name not in known and f"\n.Dt {name} " not in page.text]


def other_constants():
    """Returns the constants of other headers and the environment variables."""
    found = set()
    for path in (ROOT / "include").glob("*/*.h"):
        found |= set(re.findall(r"WEIR_\w+", path.read_text()))
    for path in (ROOT / "src").glob("*.c"):
        found |= set(re.findall(r"getenv\(\"(WEIR_\w+)\"\)", path.read_text()))
    return found


def check_differences(pages):
    """Checks that weir-stdio(7) has as many differences as the first comment of its header."""
    page = next((page for page in pages if page.name == "weir-stdio.7"), None)
    header = (ROOT / "include" / "weir" / "stdio.h").read_text()
    in_page = len(re.findall(r"^\.It$", page.section("DIFFERENCES FROM STDIO"), re.M)) if page else 0
    in_header = len(re.findall(r"^ \*\s+\d+\. ", header, re.M))
    problem = f"{in_page} in the page, {in_header} in the header"
    yield "differences from stdio", [] if in_page == in_header > 0 else [problem]


def check_examples_exist(pages):
    for page in pages:
        if is_of_calls(page):
            yield f"examples of {page.name}", [] if page.examples() else ["there is none"]
