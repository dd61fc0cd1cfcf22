"""Tables: a pandas.DataFrame where pandas is installed, else a list of dictionaries."""


def frame(rows, columns=None):
    """The rows, dictionaries by column, as a table. `columns` orders them; else as they come."""
    rows = list(rows)
    if columns is None:
        columns = list(dict.fromkeys(name for row in rows for name in row))
    try:
        import pandas
    except ImportError:
        return [{name: row.get(name) for name in columns} for row in rows]
    return pandas.DataFrame(rows, columns=columns)


def flat(members, prefix=""):
    """The members of an object in one row: those of objects in it behind a dot."""
    row = {}
    for name, value in members.items():
        if isinstance(value, dict):
            row.update(flat(value, f"{prefix}{name}."))
        else:
            row[prefix + name] = value
    return row
