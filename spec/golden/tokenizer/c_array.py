"""Writes the arrays of the C tables that tables.py and grapheme.py make."""


def c_array(name, ctype, values, width=130):
    """The definition of a constant C array, in lines of at most `width` characters."""
    lines, line = [], ""
    for v in values:
        item = f"{v},"
        if len(line) + len(item) > width:
            lines.append(line)
            line = ""
        line += item
    return f"const {ctype} {name}[] = {{\n" + "\n".join(lines + [line.rstrip(",")]) + "\n};\n"
