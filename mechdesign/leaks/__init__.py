"""What a release gives away beside the released column: order, twins, other columns."""
