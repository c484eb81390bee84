"""The commands, one file each: options on the command line, a call of the library, output."""
