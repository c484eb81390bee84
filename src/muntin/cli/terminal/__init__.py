"""What every command shares: options, files and pipes, notes, tables, progress, report files."""
