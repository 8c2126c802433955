"""What a command does: grade, write, sum up."""
