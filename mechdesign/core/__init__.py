"""What every other package uses: errors, progress, exact numbers, limits, files and documents."""
