"""Holds the extension module. The library finds its presets from here: in ../share/lockstep."""
