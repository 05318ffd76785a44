"""C++ names as compilers write them (Itanium ABI), read back: `_ZN2at6native...` becomes `at::native::...`.

Recorders on some systems cannot do that, so each template would be many kernels, and no rule by name would
hold. This reads the part of the grammar that names of functions need; a name that holds more stays as it is.
Names are untrusted: what is read, how deep it nests and how long the answer may be is bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_DEPTH: Final = 60
_READ: Final = 8_192
_LONGEST: Final = 32_768
_BUILTIN: Final = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char",
    "s": "short", "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long",
    "x": "long long", "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float",
    "d": "double", "e": "long double", "g": "__float128", "z": "...",
}  # fmt: skip
_BUILTIN_D: Final = {
    "Dn": "decltype(nullptr)", "Dh": "half", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t",
    "Da": "auto", "DF16_": "_Float16", "DF16b": "std::bfloat16_t",
}  # fmt: skip
_STD: Final = {
    "Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string", "Si": "std::istream",
    "So": "std::ostream", "Sd": "std::iostream",
}  # fmt: skip
_OPERATORS: Final = {
    "cl": "()", "ix": "[]", "pl": "+", "mi": "-", "ml": "*", "dv": "/", "rm": "%", "an": "&", "or": "|",
    "eo": "^", "aS": "=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "eq": "==", "ne": "!=", "nt": "!",
    "aa": "&&", "oo": "||", "ls": "<<", "rs": ">>", "pL": "+=", "mI": "-=", "mL": "*=", "pp": "++",
    "mm": "--", "pt": "->", "de": "*", "ad": "&", "ng": "-", "nw": " new", "dl": " delete",
}  # fmt: skip
_SUFFIX: Final = {"i": "", "j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}
_QUALIFIER: Final = {"P": "*", "R": "&", "O": "&&", "K": " const", "V": " volatile", "r": " __restrict__"}
_NUMBER: Final = re.compile(r"\d{1,5}")
_SEQUENCE: Final = re.compile(r"([0-9A-Z]{0,6})_")


class _UnreadableError(Exception):
    """The name is no mangled one, or holds what this does not read."""


@lru_cache(maxsize=50_000)
def demangled(name: str) -> str:
    """A C++ name as people write it; any other name, and one that cannot be read, as it is."""
    if not name.startswith("_Z") or len(name) > _READ:
        return name
    reader = _Reader(name)
    try:
        text = reader.encoding(0)
    except _UnreadableError:
        return name
    rest = name[reader.at :]
    return text if not rest or rest.startswith((".", "@")) else name


class _Reader:
    """Reads a name from left to right; a method reads one symbol of the grammar, and answers its text."""

    def __init__(self, name: str) -> None:
        self.name, self.at = name, 2
        self.known: list[str] = []  # what `S_`, `S0_`, ... repeat
        self.arguments: list[str] = []  # of the template that was read last: `T_`, `T0_`, ...
        self.is_template = False  # the name that was read last ends with template arguments
        self.is_constructor = False
        self.suffix = ""  # of a member function

    def encoding(self, depth: int) -> str:
        """A function with its parameters, or a variable."""
        text = self.any_name(depth + 1)
        suffix = self.suffix
        if self.at >= len(self.name) or self.peek() in "E.@":
            return text
        result = ""
        if self.is_template and not self.is_constructor:
            result = self.type(depth + 1) + " "
        return self.bounded(f"{result}{text}({self.parameters(depth)}){suffix}")

    def parameters(self, depth: int) -> str:
        parts = []
        while self.at < len(self.name) and self.peek() not in "E.@":
            parts.append(self.type(depth + 1))
        return "" if parts == ["void"] else self.bounded(", ".join(part for part in parts if part))

    def any_name(self, depth: int) -> str:
        self.descend(depth)
        self.is_template, self.is_constructor, self.suffix = False, False, ""
        if self.take("N"):
            return self.nested(depth)
        if self.take("Z"):
            return self.local(depth)
        if self.peek() == "S" and not self.starts("St"):
            text = self.substitution()
        else:
            text = ("std::" if self.take("St") else "") + self.unqualified(depth, "")
            if self.peek() == "I":
                self.remember(text)
        if self.peek() == "I":
            text += self.template_arguments(depth)
        return text

    def nested(self, depth: int) -> str:
        suffix = ""
        while self.peek() in "KVrRO":
            suffix += _QUALIFIER[self.peek()] if self.peek() in "KVr" else f" {_QUALIFIER[self.peek()]}"
            self.at += 1
        text = last = ""
        while not self.take("E"):
            self.is_template = False
            if self.peek() == "S" and not self.starts("St"):
                text = last = self.substitution()
                continue
            if self.peek() == "I":
                text += self.template_arguments(depth)
            elif self.peek() == "T":
                text = last = self.parameter()
            else:
                if self.take("St"):
                    text, last = "std", "std"
                    continue
                last = self.unqualified(depth, last)
                text = f"{text}::{last}" if text else last
            if self.peek() != "E":
                self.remember(text)
        self.suffix = suffix
        return self.bounded(text)

    def local(self, depth: int) -> str:
        text = self.encoding(depth + 1)
        self.expect("E")
        if self.take("s"):
            entity = "string literal"
        else:
            if self.take("d"):
                self.number()
                self.expect("_")
            entity = self.any_name(depth + 1)
        if self.take("_"):
            self.number()
        return f"{text}::{entity}"

    def unqualified(self, depth: int, outer: str) -> str:
        self.take("L")  # of internal linkage
        sign = self.peek()
        if sign.isdigit():
            length = self.number()
            text, self.at = self.name[self.at : self.at + length], self.at + length
            if len(text) < length:
                raise _UnreadableError
            text = "(anonymous namespace)" if text.startswith(("_GLOBAL__N", "_INTERNAL")) else text
        elif self.take("Ul"):
            text = f"{{lambda({self.parameters(depth)})#{self.nth()}}}"
        elif self.take("Ut"):
            text = f"{{unnamed type#{self.nth(closed=False)}}}"
        elif sign in "CD" and self.name[self.at + 1 : self.at + 2].isdigit():
            self.at += 2
            self.is_constructor = True
            text = ("~" if sign == "D" else "") + outer
        elif self.take("cv"):
            self.is_constructor = True  # it has no result of its own
            text = f"operator {self.type(depth + 1)}"
        else:
            operator = _OPERATORS.get(self.name[self.at : self.at + 2])
            if operator is None:
                raise _UnreadableError
            self.at += 2
            text = f"operator{operator}"
        while self.take("B"):
            length = self.number()
            self.at += length
        return text

    def nth(self, *, closed: bool = True) -> int:
        """Of lambdas and types without a name in one function: `E_` is the first, `E0_` the second."""
        if closed:
            self.expect("E")
        number = self.number() + 2 if self.peek().isdigit() else 1
        self.expect("_")
        return number

    def template_arguments(self, depth: int) -> str:
        self.expect("I")
        parts = self.list_of_arguments(depth + 1)
        self.arguments, self.is_template = parts, True
        text = ", ".join(part for part in parts if part)
        return self.bounded(f"<{text}{' ' * text.endswith('>')}>")

    def list_of_arguments(self, depth: int) -> list[str]:
        self.descend(depth)
        parts: list[str] = []
        while not self.take("E"):
            if self.take("J"):
                parts.append(", ".join(self.list_of_arguments(depth + 1)))
            elif self.take("L"):
                parts.append(self.literal(depth))
            elif self.take("X"):
                parts.append(self.expression(depth))
                self.expect("E")
            elif self.take("Tn"):  # the type of a parameter that is none itself, by those before it
                self.of_parameter(parts, depth)
            else:
                parts.append(self.type(depth + 1))
        return parts

    def of_parameter(self, parts: list[str], depth: int) -> None:
        outer, self.arguments = self.arguments, parts
        self.type(depth + 1)
        self.arguments = outer

    def expression(self, depth: int) -> str:
        """Of expressions only literals, addresses of functions, and parameters or their negation."""
        if self.take("nt"):
            return f"!({self.expression(depth)})"
        if self.peek() == "T":
            return self.parameter()
        address = "&" * self.take("ad")
        self.expect("L")
        return address + self.literal(depth)

    def literal(self, depth: int) -> str:
        if self.take("_Z"):
            text = self.encoding(depth + 1)
            self.expect("E")
            return text
        sign = self.peek()
        kind = self.type(depth + 1)
        end = self.name.find("E", self.at)
        if end < 0:
            raise _UnreadableError
        value, self.at = self.name[self.at : end].replace("n", "-", 1), end + 1
        if sign == "b":
            return "true" if value == "1" else "false"
        return value + _SUFFIX[sign] if sign in _SUFFIX else f"({kind}){value}"

    def type(self, depth: int) -> str:
        """Its own template arguments are not those of the function."""
        kept = self.arguments, self.is_template, self.is_constructor
        text = self.any_type(depth)
        self.arguments, self.is_template, self.is_constructor = kept
        return text

    def any_type(self, depth: int) -> str:
        self.descend(depth)
        sign, two = self.peek(), self.name[self.at : self.at + 2]
        if sign in _BUILTIN:
            self.at += 1
            return _BUILTIN[sign]
        if sign == "D":
            return self.type_of_d(two, depth)
        if sign in _QUALIFIER:
            self.at += 1
            text = self.wrapped(self.type(depth + 1), _QUALIFIER[sign])
        elif sign == "S" and two != "St":
            text = self.substitution()
            if self.peek() != "I":
                return text
            text += self.template_arguments(depth)
        elif sign == "T":
            text = self.parameter()
            if self.peek() != "I":
                return text
            text += self.template_arguments(depth)
        elif sign == "F":
            text = self.function(depth)
        elif sign == "A":
            self.at += 1
            length = self.number() if self.peek().isdigit() else ""
            self.expect("_")
            text = f"{self.type(depth + 1)} [{length}]"
        elif sign == "M":
            self.at += 1
            owner, member = self.type(depth + 1), self.type(depth + 1)
            text = self.wrapped(member, f" {owner}::*")
        elif sign == "u":
            self.at += 1
            text = self.unqualified(depth, "")
        else:
            text = self.any_name(depth + 1)
        return self.remember(text)

    def type_of_d(self, two: str, depth: int) -> str:
        found = next((key for key in _BUILTIN_D if self.starts(key)), None)
        if found is not None:
            self.at += len(found)
            return _BUILTIN_D[found]
        if two == "Dp":
            self.at += 2
            return self.remember(self.type(depth + 1))
        if two == "Dv":
            self.at += 2
            length = self.number()
            self.expect("_")
            return self.remember(f"{self.type(depth + 1)} __vector({length})")
        raise _UnreadableError

    def function(self, depth: int) -> str:
        self.expect("F")
        self.take("Y")
        result = self.type(depth + 1)
        text = f"{result} ({self.parameters(depth)})"
        self.expect("E")
        return text

    @staticmethod
    def wrapped(inner: str, outer: str) -> str:
        """A pointer to a function stands before its parameters: `void (*)(int)`."""
        if inner.endswith(")") and " (" in inner:
            before, _, rest = inner.partition(" (")
            return (
                f"{before} ({outer.strip()}){rest}" if rest.startswith("*") else f"{before} ({outer})({rest}"
            )
        return inner + outer

    def parameter(self) -> str:
        """`T_`, `T0_`: an argument of the template; its name where that is not known."""
        self.expect("T")
        found = _SEQUENCE.match(self.name, self.at)
        if found is None or not (not found[1] or found[1].isdigit()):
            raise _UnreadableError
        self.at = found.end()
        number = int(found[1]) + 1 if found[1] else 0
        return self.remember(self.arguments[number] if number < len(self.arguments) else f"T{number}")

    def substitution(self) -> str:
        two = self.name[self.at : self.at + 2]
        if two in _STD:
            self.at += 2
            return _STD[two]
        self.expect("S")
        found = _SEQUENCE.match(self.name, self.at)
        if found is None:
            raise _UnreadableError
        self.at = found.end()
        number = int(found[1], 36) + 1 if found[1] else 0
        if number >= len(self.known):
            raise _UnreadableError
        return self.known[number]

    # -- signs -----------------------------------------------------------------------------------------

    def remember(self, text: str) -> str:
        self.known.append(self.bounded(text))
        return text

    def bounded(self, text: str) -> str:
        """What repeats itself would grow without end."""
        if len(text) > _LONGEST:
            raise _UnreadableError
        return text

    def descend(self, depth: int) -> None:
        if depth > _DEPTH or self.at >= len(self.name):
            raise _UnreadableError

    def peek(self) -> str:
        return self.name[self.at : self.at + 1] or "\0"

    def starts(self, text: str) -> bool:
        return self.name.startswith(text, self.at)

    def take(self, text: str) -> bool:
        found = self.starts(text)
        self.at += len(text) * found
        return found

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise _UnreadableError

    def number(self) -> int:
        found = _NUMBER.match(self.name, self.at)
        if found is None:
            raise _UnreadableError
        self.at = found.end()
        return int(found[0])
