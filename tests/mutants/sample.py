"""Small mistakes made mechanically: a sample of all that a few rules can make of the sources.

Clang's syntax tree says where expressions are. A file is drawn in proportion to its lines, then a
place in it, both by a seed, so that a sample is the same wherever it is drawn."""

import pathlib
import random
import subprocess
import sys

import clang.cindex as cindex
from clang.cindex import CursorKind as Kind

FOLDERS = ("models", "topologies", "sim")
# Expressions that the compiler has to know the value of.
CONSTANT = (Kind.STATIC_ASSERT, Kind.CASE_STMT, Kind.ENUM_DECL, Kind.FIELD_DECL, Kind.PARM_DECL,
            Kind.TEMPLATE_NON_TYPE_PARAMETER, Kind.USING_DIRECTIVE, Kind.TYPE_ALIAS_DECL)
OPERATORS = {"+": ("-", None), "-": ("+", None), "*": ("/",), "/": ("*",), "<": ("<=", ">"),
             "<=": ("<",), ">": (">=", "<"), ">=": (">",), "==": ("!=",), "!=": ("==",),
             "&&": ("||",), "||": ("&&",), "+=": ("-=",), "-=": ("+=",), "*=": ("/=",),
             "/=": ("*=",), "%": ("/",)}
FUNCTIONS = {"min": "max", "max": "min", "ceil": "floor", "floor": "ceil"}


def code_files(root):
    listed = subprocess.run(["git", "ls-files", "-z", *(f"{folder}/*.cpp" for folder in FOLDERS)],
                            cwd=root, check=True, capture_output=True).stdout
    return sorted(name for name in listed.decode().split("\0") if name)


class Places:
    """Where a file can be changed: (begin, end, right, wrong, what), in bytes."""

    def __init__(self, root, name):
        self.text = (root / name).read_bytes()
        self.name = name
        unit = cindex.Index.create().parse(
            name, args=["-std=c++20", f"-I{root}", f"-I{root}/build/proto",
                        "-I/usr/lib/llvm-19/lib/clang/19/include"],
            unsaved_files=[(name, self.text.decode())])
        wrong = [d.spelling for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if wrong:
            raise ValueError(f"{name}: {wrong[0]}")
        self.found = []
        for cursor in unit.cursor.get_children():
            if cursor.location.file and cursor.location.file.name == name:
                self.look(cursor, False)

    def of(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def words(self, begin, end):
        return self.text[begin:end].decode()

    def look(self, cursor, inside):
        if cursor.kind in CONSTANT:
            return
        if cursor.kind in (Kind.VAR_DECL, Kind.FUNCTION_DECL, Kind.CXX_METHOD):
            begin, end = self.of(cursor)
            head = self.words(begin, end).split("{")[0].split("=")[0]
            if "constexpr" in head or "consteval" in head:
                return
        if cursor.kind == Kind.COMPOUND_STMT:
            inside = True
        if inside:
            self.place(cursor)
        for child in cursor.get_children():
            self.look(child, inside)

    def place(self, cursor):
        begin, end = self.of(cursor)
        if cursor.kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR):
            self.place_operator(cursor, begin, end)
        elif cursor.kind == Kind.INTEGER_LITERAL and self.words(begin, end).isdigit():
            number = int(self.words(begin, end))
            self.add(begin, end, str(number + 1), "another number")
        elif cursor.kind == Kind.FLOATING_LITERAL:
            self.add(begin, end, f"(2 * {self.words(begin, end)})", "another number")
        elif cursor.kind == Kind.CALL_EXPR and cursor.spelling in FUNCTIONS:
            words = self.words(begin, end)
            if words.startswith(f"std::{cursor.spelling}("):
                other = FUNCTIONS[cursor.spelling]
                self.add(begin, end, words.replace(cursor.spelling, other, 1),
                         f"{other} for {cursor.spelling}")

    def place_operator(self, cursor, begin, end):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        left, right = self.of(children[0]), self.of(children[1])
        between = self.words(left[1], right[0])
        sign = between.strip()
        if sign not in OPERATORS or left[0] != begin or right[1] != end:
            return
        for other in OPERATORS[sign]:
            if other is None:
                self.add(begin, end, self.words(*left), "a term is dropped")
            else:
                wrong = self.words(*left) + between.replace(sign, other, 1) + self.words(*right)
                self.add(begin, end, wrong, f"{other} for {sign}")

    def add(self, begin, end, wrong, what):
        right = self.words(begin, end)
        if "\n#" not in right and "co_" not in right:
            self.found.append((begin, end, right, wrong, what))


def line_of(text, offset):
    begin = text.rfind(b"\n", 0, offset) + 1
    end = text.find(b"\n", offset)
    return text.count(b"\n", 0, offset) + 1, text[begin:end].decode().strip()


def sample(root, count, seed):
    """`count` rows: file, begin, end, right, wrong, name. No two overlap."""
    root = pathlib.Path(root)
    files = code_files(root)
    lines = [(root / name).read_text().count("\n") for name in files]
    draw = random.Random(seed)
    places, rows, taken = {}, [], {}
    for name in draw.choices(files, lines, k=20 * count):
        if len(rows) == count:
            break
        if name not in places:
            try:
                places[name] = Places(root, name)
            except ValueError as wrong:
                print(f"left out: {wrong}", file=sys.stderr)
                places[name] = None
        if places[name] is None or not places[name].found:
            continue
        begin, end, right, wrong, what = draw.choice(places[name].found)
        if any(begin < other[1] and other[0] < end for other in taken.get(name, [])):
            continue
        taken.setdefault(name, []).append((begin, end))
        line, words = line_of(places[name].text, begin)
        rows.append({"file": name, "begin": begin, "end": end, "right": right, "wrong": wrong,
                     "line": words, "what": what, "name": f"{name}:{line}: {what} in `{words}`"})
    return rows
