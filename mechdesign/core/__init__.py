"""What every other package stands on: errors, progress, exact numbers, integer rows, files and documents."""
