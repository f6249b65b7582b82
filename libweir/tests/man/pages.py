"""pages.py: parses the declarations of the header and the manual pages."""
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NOT_FOR_PROGRAMS = {"WEIR_H", "WEIR_LIKELY", "WEIR_LOAD", "WEIR_PUBLISH", "WEIR_STORE",
                    "WEIR_ONE_THREAD", "WEIR_INLINE"}


def squeeze(text):
    """Returns a declaration with normalized spaces."""
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([*(),]) ?", r"\1", text).strip()


class Header:
    def __init__(self, path):
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
        result, end = r"((?:const )?\w[\w ]*?[ *]+)", r"(?:\s*[;{]|\s*#if)"
        declaration = rf"^(?:WEIR_INLINE )?{result}(weir_\w+)(\([^;{{]*?\)){end}"
        self.functions = {name: squeeze(f"{result} {name}{arguments}")
                          for result, name, arguments in re.findall(declaration, text, re.M)}
        self.constants = set(re.findall(r"^\s*(WEIR_\w+)(?: =|,|\n\})", text, re.M))
        self.constants |= set(re.findall(r"^#define (WEIR_\w+)", text, re.M)) - NOT_FOR_PROGRAMS
        self.members = {name: self.members_of(body)
                        for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S)}

    @staticmethod
    def members_of(body):
        names = re.findall(r"\(\*(\w+)\)", body)
        for line in re.sub(r"\(\*.*", "", body).split(";"):
            names += re.findall(r"(\w+)(?:\[\d+\])?\s*(?=,|$)", line.strip())
        return names


def plain(line):
    """Returns a line of a display without escapes."""
    for escape, meaning in (("\\&", ""), ("\\-", "-"), ("\\(aq", "'"), ("\\(ga", "`"), ("\\(ha", "^"),
                            ("\\(ti", "~"), ("\\e", "\\")):
        line = line.replace(escape, meaning)
    return line


class Example:
    def __init__(self, page, number, code, tests):
        self.label = f"{page}, example {number}"
        self.code = code
        self.tests = tests
        self.main = "\n".join(value for key, value in tests if key == "main")
        self.expected = {key: value for key, value in tests if key != "main"}


class Page:
    def __init__(self, path):
        self.path = path
        self.name = path.name
        self.relative_path = f"man{path.name[-1]}/{path.name}"
        self.text = path.read_text()
        self.target = self.text.split()[1] if self.text.startswith(".so ") else None

    def section(self, title):
        found = re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", self.text, re.M | re.S)
        return found.group(1) if found else ""

    def names(self):
        return re.findall(r"^\.Nm (\S+)", self.section("NAME"), re.M)

    def prototypes(self):
        """Returns the prototypes of SYNOPSIS, in the header's notation."""
        found, result, name, arguments = {}, "", None, []
        for line in self.section("SYNOPSIS").splitlines():
            macro, *words = shlex.split(line)
            if macro == ".Ft":
                result = words[0]
            elif macro == ".Fn":
                found[words[0]] = squeeze(f"{result} {words[0]}({', '.join(words[1:])})")
            elif macro == ".Fo":
                name, arguments = words[0], []
            elif macro == ".Fa":
                arguments += words
            elif macro == ".Fc":
                found[name] = squeeze(f"{result} {name}({', '.join(arguments)})")
        return found

    def examples(self):
        found, tests, code = [], [], None
        for line in self.section("EXAMPLES").splitlines():
            test = re.match(r'\.\\" test ([^:]+):(?: (.*))?$', line)
            if test:
                tests.append((test.group(1), test.group(2) or ""))
            elif line.startswith(".Bd -literal"):
                code = []
            elif line == ".Ed" and code is not None:
                found.append(Example(self.name, len(found) + 1, "\n".join(code) + "\n", tests))
                tests, code = [], None
            elif code is not None:
                code.append(plain(line))
        return found
